// How one function on float becomes MSL's overload set: plain functions on float and half (and,
// from Metal 4 on, bfloat), component by component on vectors, with scalars broadcast where the
// other arguments are vectors. 16-bit arguments are computed in float and rounded once.
#pragma once

namespace mpskit {

#if __METAL_VERSION__ >= 400
template <class T>
concept math_element = types::floating<T>;
#define MPSKIT_FOR_MATH_SMALL(macro, ...) macro(half, __VA_ARGS__) macro(bfloat, __VA_ARGS__)
#else
template <class T>
concept math_element = core::one_of<T, float, half>;
#define MPSKIT_FOR_MATH_SMALL(macro, ...) macro(half, __VA_ARGS__)
#endif

template <class T>
concept arithmetic_element = math_element<T> || core::integer<T>;

// Arguments that are vectors of one shape once swizzles and packed vectors are read and scalars
// broadcast, and are not so already.
template <class... A>
concept mixed_vectors = types::vector_operands<A...> &&
    !(core::same<A, types::common_vector<A...>> && ...);

} // namespace mpskit

// ---- on vectors, by way of the functions on scalars declared before ----

#define MPSKIT_VECTOR_1(name, allowed)                                        \
  template <class T, int N>                                                   \
    requires allowed<T>                                                       \
  constexpr auto name(vec<T, N> x) {                                          \
    using R = decltype(name(x[0]));                                           \
    return mpskit::types::generate<R, N>([&](int i) { return name(x[i]); });  \
  }                                                                           \
  template <class X>                                                          \
    requires mpskit::mixed_vectors<X>                                         \
  constexpr auto name(const X& x) {                                           \
    return name(mpskit::types::vector_of<X>(x));                              \
  }

#define MPSKIT_VECTOR_2(name, allowed)                                              \
  template <class T, int N>                                                         \
    requires allowed<T>                                                             \
  constexpr auto name(vec<T, N> x, vec<T, N> y) {                                   \
    using R = decltype(name(x[0], y[0]));                                           \
    return mpskit::types::generate<R, N>([&](int i) { return name(x[i], y[i]); });  \
  }                                                                                 \
  template <class X, class Y>                                                       \
    requires mpskit::mixed_vectors<X, Y>                                            \
  constexpr auto name(const X& x, const Y& y) {                                     \
    using V = mpskit::types::common_vector<X, Y>;                                   \
    return name(V(x), V(y));                                                        \
  }

#define MPSKIT_VECTOR_3(name, allowed)                                                    \
  template <class T, int N>                                                               \
    requires allowed<T>                                                                   \
  constexpr auto name(vec<T, N> x, vec<T, N> y, vec<T, N> z) {                            \
    using R = decltype(name(x[0], y[0], z[0]));                                           \
    return mpskit::types::generate<R, N>([&](int i) { return name(x[i], y[i], z[i]); });  \
  }                                                                                       \
  template <class X, class Y, class Z>                                                    \
    requires mpskit::mixed_vectors<X, Y, Z>                                               \
  constexpr auto name(const X& x, const Y& y, const Z& z) {                               \
    using V = mpskit::types::common_vector<X, Y, Z>;                                      \
    return name(V(x), V(y), V(z));                                                        \
  }

// ---- on floating-point numbers; the expression is in terms of floats x, y, z ----

#define MPSKIT_SMALL_1(T, name)  \
  inline T name(T x) { return T(name(float(x))); }
#define MPSKIT_SMALL_2(T, name)  \
  inline T name(T x, T y) { return T(name(float(x), float(y))); }
#define MPSKIT_SMALL_3(T, name)  \
  inline T name(T x, T y, T z) { return T(name(float(x), float(y), float(z))); }

#define MPSKIT_SCALAR_MATH_1(name, expression)       \
  inline float name(float x) { return expression; }  \
  MPSKIT_FOR_MATH_SMALL(MPSKIT_SMALL_1, name)
#define MPSKIT_SCALAR_MATH_2(name, expression)                \
  inline float name(float x, float y) { return expression; }  \
  MPSKIT_FOR_MATH_SMALL(MPSKIT_SMALL_2, name)
#define MPSKIT_SCALAR_MATH_3(name, expression)                         \
  inline float name(float x, float y, float z) { return expression; }  \
  MPSKIT_FOR_MATH_SMALL(MPSKIT_SMALL_3, name)

#define MPSKIT_MATH_1(name, expression)   \
  MPSKIT_SCALAR_MATH_1(name, expression)  \
  MPSKIT_VECTOR_1(name, mpskit::math_element)
#define MPSKIT_MATH_2(name, expression)   \
  MPSKIT_SCALAR_MATH_2(name, expression)  \
  MPSKIT_VECTOR_2(name, mpskit::math_element)
#define MPSKIT_MATH_3(name, expression)   \
  MPSKIT_SCALAR_MATH_3(name, expression)  \
  MPSKIT_VECTOR_3(name, mpskit::math_element)
