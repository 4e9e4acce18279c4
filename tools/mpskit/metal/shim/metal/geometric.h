// Geometric functions. Sums run from the first component to the last, in float.
#pragma once

#include "math.h"

namespace metal {

template <class T, int N>
  requires mpskit::math_element<T>
inline T dot(vec<T, N> x, vec<T, N> y) {
  float sum = float(x[0]) * float(y[0]);
  for (int i = 1; i < N; ++i) sum += float(x[i]) * float(y[i]);
  return T(sum);
}
template <class X, class Y>
  requires mpskit::mixed_vectors<X, Y>
inline auto dot(const X& x, const Y& y) {
  using V = mpskit::types::common_vector<X, Y>;
  return dot(V(x), V(y));
}

template <class T>
  requires mpskit::math_element<T>
inline vec<T, 3> cross(vec<T, 3> a, vec<T, 3> b) {
  return vec<T, 3>(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}
// The element is checked here, too: a kernel may have this name, and `cross<int, int3>` mean that.
template <class X, class Y>
  requires mpskit::mixed_vectors<X, Y> &&
    mpskit::math_element<
        typename mpskit::types::vector_shape<mpskit::types::common_vector<X, Y>>::element>
inline auto cross(const X& x, const Y& y) {
  using V = mpskit::types::common_vector<X, Y>;
  return cross(V(x), V(y));
}

// Functions of vectors; each also takes what reads as one.
#define MPSKIT_GEOMETRIC_1(name, expression)      \
  template <class T, int N>                       \
    requires mpskit::math_element<T>              \
  inline auto name(vec<T, N> x) {                 \
    return expression;                            \
  }                                               \
  template <class X>                              \
    requires mpskit::mixed_vectors<X>             \
  inline auto name(const X& x) {                  \
    return name(mpskit::types::vector_of<X>(x));  \
  }
#define MPSKIT_GEOMETRIC_2(name, expression)       \
  template <class T, int N>                        \
    requires mpskit::math_element<T>               \
  inline auto name(vec<T, N> x, vec<T, N> y) {     \
    return expression;                             \
  }                                                \
  template <class X, class Y>                      \
    requires mpskit::mixed_vectors<X, Y>           \
  inline auto name(const X& x, const Y& y) {       \
    using V = mpskit::types::common_vector<X, Y>;  \
    return name(V(x), V(y));                       \
  }

MPSKIT_GEOMETRIC_1(length_squared, dot(x, x))
MPSKIT_GEOMETRIC_1(length, sqrt(dot(x, x)))
MPSKIT_GEOMETRIC_1(normalize, x * rsqrt(dot(x, x)))
MPSKIT_GEOMETRIC_2(distance_squared, length_squared(x - y))
MPSKIT_GEOMETRIC_2(distance, length(x - y))
#undef MPSKIT_GEOMETRIC_1
#undef MPSKIT_GEOMETRIC_2

template <class T, int N>
inline vec<T, N> reflect(vec<T, N> incident, vec<T, N> normal) {
  const vec<T, N> unit = normalize(normal);
  return incident - unit * (T(2) * dot(unit, incident));
}
template <class I, class N>
  requires mpskit::mixed_vectors<I, N>
inline auto reflect(const I& incident, const N& normal) {
  using V = mpskit::types::common_vector<I, N>;
  return reflect(V(incident), V(normal));
}

template <class T, int N>
inline vec<T, N> faceforward(vec<T, N> normal, vec<T, N> incident, vec<T, N> reference) {
  return dot(reference, incident) < T(0) ? normal : -normal;
}
template <class N, class I, class R>
  requires mpskit::mixed_vectors<N, I, R>
inline auto faceforward(const N& normal, const I& incident, const R& reference) {
  using V = mpskit::types::common_vector<N, I, R>;
  return faceforward(V(normal), V(incident), V(reference));
}

template <class T, int N>
inline vec<T, N> refract(
    vec<T, N> incident,
    vec<T, N> normal,
    mpskit::core::identity_t<T> eta) {
  const T cosine = dot(normal, incident);
  const T k = T(1) - eta * eta * (T(1) - cosine * cosine);
  if (k < T(0)) return vec<T, N>(0);
  return incident * eta - normal * (eta * cosine + T(sqrt(k)));
}
template <class I, class N, mpskit::types::scalar S>
  requires mpskit::mixed_vectors<I, N>
inline auto refract(const I& incident, const N& normal, S eta) {
  using V = mpskit::types::common_vector<I, N>;
  return refract(V(incident), V(normal), eta);
}

namespace precise {
using metal::cross;
using metal::distance;
using metal::distance_squared;
using metal::dot;
using metal::length;
using metal::length_squared;
using metal::normalize;
} // namespace precise
namespace fast {
using metal::cross;
using metal::distance;
using metal::distance_squared;
using metal::dot;
using metal::length;
using metal::length_squared;
using metal::normalize;
} // namespace fast

} // namespace metal
