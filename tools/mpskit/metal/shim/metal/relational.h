// Relational functions. They, and no other part of the library before Metal 4, take bfloat.
#pragma once

#include "overloads.h"

namespace mpskit {

// The magnitude of a float as an integer, which orders as the floats do: infinity, then NaNs.
constexpr uint magnitude_bits(float x) { return __builtin_bit_cast(uint, x) & 0x7FFFFFFFu; }
inline constexpr uint infinity_bits = 0x7F800000u;

} // namespace mpskit

namespace metal {

#define MPSKIT_RELATIONAL_1(name, expression)               \
  constexpr bool name(float x) { return expression; }       \
  constexpr bool name(half x) { return name(float(x)); }    \
  constexpr bool name(bfloat x) { return name(float(x)); }  \
  MPSKIT_VECTOR_1(name, mpskit::types::floating)

#define MPSKIT_RELATIONAL_2(name, expression)                                   \
  constexpr bool name(float x, float y) { return expression; }                  \
  constexpr bool name(half x, half y) { return name(float(x), float(y)); }      \
  constexpr bool name(bfloat x, bfloat y) { return name(float(x), float(y)); }  \
  MPSKIT_VECTOR_2(name, mpskit::types::floating)

MPSKIT_RELATIONAL_1(isnan, x != x)
MPSKIT_RELATIONAL_1(isinf, mpskit::magnitude_bits(x) == mpskit::infinity_bits)
MPSKIT_RELATIONAL_1(isfinite, mpskit::magnitude_bits(x) < mpskit::infinity_bits)
MPSKIT_RELATIONAL_1(signbit, (__builtin_bit_cast(uint, x) >> 31) != 0)
MPSKIT_RELATIONAL_2(isordered, x == x && y == y)
MPSKIT_RELATIONAL_2(isunordered, x != x || y != y)
#undef MPSKIT_RELATIONAL_1
#undef MPSKIT_RELATIONAL_2

// Normal is a property of the format: 2^-20 is subnormal as a half.
#define MPSKIT_ISNORMAL(T)                                                              \
  constexpr bool isnormal(T x) {                                                        \
    const uint smallest = mpskit::magnitude_bits(float(numeric_limits<T>::min()));      \
    return isfinite(x) && mpskit::magnitude_bits(float(x)) >= smallest;                 \
  }
MPSKIT_ISNORMAL(float)
MPSKIT_ISNORMAL(half)
MPSKIT_ISNORMAL(bfloat)
#undef MPSKIT_ISNORMAL
MPSKIT_VECTOR_1(isnormal, mpskit::types::floating)

template <int N>
constexpr bool any(vec<bool, N> x) {
  bool result = false;
  for (int i = 0; i < N; ++i) result |= x[i];
  return result;
}
template <int N>
constexpr bool all(vec<bool, N> x) {
  bool result = true;
  for (int i = 0; i < N; ++i) result &= x[i];
  return result;
}
constexpr bool any(bool x) { return x; }
constexpr bool all(bool x) { return x; }

// b where the condition holds, a elsewhere.
#define MPSKIT_SELECT(T)  \
  constexpr T select(T a, T b, bool condition) { return condition ? b : a; }
MPSKIT_SELECT(bool)
MPSKIT_SELECT(char)
MPSKIT_SELECT(uchar)
MPSKIT_SELECT(short)
MPSKIT_SELECT(ushort)
MPSKIT_SELECT(int)
MPSKIT_SELECT(uint)
MPSKIT_SELECT(long)
MPSKIT_SELECT(ulong)
MPSKIT_SELECT(half)
MPSKIT_SELECT(bfloat)
MPSKIT_SELECT(float)
#undef MPSKIT_SELECT

template <class T, int N>
constexpr vec<T, N> select(vec<T, N> a, vec<T, N> b, vec<bool, N> condition) {
  return mpskit::types::generate<T, N>([&](int i) { return condition[i] ? b[i] : a[i]; });
}
template <class A, class B>
  requires mpskit::mixed_vectors<A, B>
constexpr auto select(
    const A& a,
    const B& b,
    vec<bool, mpskit::types::vector_shape<mpskit::types::common_vector<A, B>>::size> condition) {
  using V = mpskit::types::common_vector<A, B>;
  return select(V(a), V(b), condition);
}
template <class T, int N>
constexpr vec<T, N> select(vec<T, N> a, vec<T, N> b, bool condition) {
  return condition ? b : a;
}

} // namespace metal
