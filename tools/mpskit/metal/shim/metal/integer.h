// Functions on integers: plain overloads for the eight types. Arithmetic is done on unsigned
// numbers, so that an overflow wraps as it does on a GPU.
#pragma once

#include "overloads.h"

namespace mpskit::integers {

template <class T>
inline constexpr int width = int(8 * sizeof(T));
template <class T>
using unsigned_of = typename metal::make_unsigned<T>::type;
template <class T>
inline constexpr bool is_signed = core::signed_integer<T>;

template <class T>
constexpr T wrapping_add(T x, T y) {
  return static_cast<T>(ulong(x) + ulong(y));
}
template <class T>
constexpr T wrapping_multiply(T x, T y) {
  return static_cast<T>(ulong(x) * ulong(y));
}

// The nearest value of T to an exact result known to be too large, or too small.
template <class T>
constexpr T bound(bool too_small) {
  return too_small ? metal::numeric_limits<T>::min() : metal::numeric_limits<T>::max();
}

template <class T>
constexpr T add_saturated(T x, T y) {
  const T sum = wrapping_add(x, y);
  if constexpr (is_signed<T>)
    return ((x ^ sum) & (y ^ sum)) < 0 ? bound<T>(x < 0) : sum;
  else
    return sum < x ? bound<T>(false) : sum;
}

template <class T>
constexpr T subtract_saturated(T x, T y) {
  const T difference = static_cast<T>(ulong(x) - ulong(y));
  if constexpr (is_signed<T>)
    return ((x ^ y) & (x ^ difference)) < 0 ? bound<T>(x < 0) : difference;
  else
    return x < y ? 0 : difference;
}

// The upper half of the 128-bit product, from products of 32-bit halves.
constexpr ulong multiply_high(ulong x, ulong y) {
  constexpr ulong low = 0xFFFFFFFFul;
  const ulong cross = (x >> 32) * (y & low) + ((x & low) * (y & low) >> 32);
  const ulong other = (x & low) * (y >> 32) + (cross & low);
  return (x >> 32) * (y >> 32) + (cross >> 32) + (other >> 32);
}

template <class T>
constexpr T multiply_high(T x, T y) {
  if constexpr (sizeof(T) < 8) {
    return static_cast<T>(long(x) * long(y) >> width<T>);
  } else {
    // A negative factor reads as itself plus 2^64.
    ulong high = multiply_high(ulong(x), ulong(y));
    if (x < 0) high -= ulong(y);
    if (y < 0) high -= ulong(x);
    return static_cast<T>(high);
  }
}
constexpr uint multiply_high(uint x, uint y) { return uint(ulong(x) * ulong(y) >> 32); }

template <class T>
constexpr T multiply_add_saturated(T x, T y, T z) {
  using U = unsigned_of<T>;
  const U product = U(wrapping_multiply(x, y));
  const U low = U(product + U(z));
  const T carry = T(low < product) - T(is_signed<T> && z < 0);
  const T high = wrapping_add(multiply_high(x, y), carry);
  const T sign = is_signed<T> && T(low) < 0 ? T(-1) : T(0);
  return high == sign ? T(low) : bound<T>(high < 0);
}

template <class T>
constexpr T rotate(T value, T count) {
  using U = unsigned_of<T>;
  const unsigned left = static_cast<unsigned>(count) % width<T>;
  const U bits = static_cast<U>(value);
  return static_cast<T>(left == 0 ? bits : U(U(bits << left) | U(bits >> (width<T> - left))));
}

template <class T>
constexpr T reverse_bits(T value) {
  ulong bits = static_cast<unsigned_of<T>>(value), reversed = 0;
  for (int i = 0; i < width<T>; ++i, bits >>= 1) reversed = reversed << 1 | (bits & 1u);
  return static_cast<T>(reversed);
}

template <class T>
constexpr T popcount(T value) {
  return static_cast<T>(target::count_ones(static_cast<unsigned_of<T>>(value)));
}

template <class T>
constexpr T clz(T value) {
  const ulong bits = static_cast<unsigned_of<T>>(value);
  return static_cast<T>(bits == 0 ? width<T> : target::leading_zeros(bits) - (64 - width<T>));
}

template <class T>
constexpr T ctz(T value) {
  const ulong bits = static_cast<unsigned_of<T>>(value);
  return static_cast<T>(bits == 0 ? width<T> : target::trailing_zeros(bits));
}

constexpr ulong low_bits(uint count) { return count >= 64 ? ~0ul : (1ul << count) - 1; }

// `count` bits from bit `offset` on, sign-extended when T is signed.
template <class T>
constexpr T extract_bits(T value, uint offset, uint count) {
  if (count == 0) return 0;
  const ulong field = (ulong(unsigned_of<T>(value)) >> offset) & low_bits(count);
  const bool negative = is_signed<T> && (field >> (count - 1) & 1u);
  return static_cast<T>(negative ? field | ~low_bits(count) : field);
}

template <class T>
constexpr T insert_bits(T base, T insert, uint offset, uint count) {
  const ulong mask = count == 0 ? 0 : low_bits(count) << offset;
  return static_cast<T>((ulong(base) & ~mask) | (ulong(insert) << offset & mask));
}

} // namespace mpskit::integers

namespace metal {

#define MPSKIT_INTEGERS(T)                                                                   \
  constexpr T abs(T x) { return mpskit::integers::is_signed<T> && x < 0 ? T(0ul - x) : x; }  \
  constexpr T min(T x, T y) { return y < x ? y : x; }                                        \
  constexpr T max(T x, T y) { return x < y ? y : x; }                                        \
  constexpr T clamp(T x, T low, T high) { return min(max(x, low), high); }                   \
  constexpr T min3(T x, T y, T z) { return min(min(x, y), z); }                              \
  constexpr T max3(T x, T y, T z) { return max(max(x, y), z); }                              \
  constexpr T median3(T x, T y, T z) { return max(min(x, y), min(max(x, y), z)); }           \
  constexpr make_unsigned_t<T> absdiff(T x, T y) {                                           \
    return make_unsigned_t<T>(x < y ? ulong(y) - ulong(x) : ulong(x) - ulong(y));            \
  }                                                                                          \
  constexpr T addsat(T x, T y) { return mpskit::integers::add_saturated(x, y); }             \
  constexpr T subsat(T x, T y) { return mpskit::integers::subtract_saturated(x, y); }        \
  constexpr T hadd(T x, T y) { return T((x & y) + ((x ^ y) >> 1)); }                         \
  constexpr T rhadd(T x, T y) { return T((x | y) - ((x ^ y) >> 1)); }                        \
  constexpr T mulhi(T x, T y) { return mpskit::integers::multiply_high(x, y); }              \
  constexpr T madhi(T x, T y, T z) {                                                         \
    return mpskit::integers::wrapping_add(mulhi(x, y), z);                                   \
  }                                                                                          \
  constexpr T madsat(T x, T y, T z) {                                                        \
    return mpskit::integers::multiply_add_saturated(x, y, z);                                \
  }                                                                                          \
  constexpr T rotate(T x, T count) { return mpskit::integers::rotate(x, count); }            \
  constexpr T popcount(T x) { return mpskit::integers::popcount(x); }                        \
  constexpr T clz(T x) { return mpskit::integers::clz(x); }                                  \
  constexpr T ctz(T x) { return mpskit::integers::ctz(x); }                                  \
  constexpr T reverse_bits(T x) { return mpskit::integers::reverse_bits(x); }                \
  constexpr T extract_bits(T x, uint offset, uint count) {                                   \
    return mpskit::integers::extract_bits(x, offset, count);                                 \
  }                                                                                          \
  constexpr T insert_bits(T base, T insert, uint offset, uint count) {                       \
    return mpskit::integers::insert_bits(base, insert, offset, count);                       \
  }
MPSKIT_INTEGERS(char)
MPSKIT_INTEGERS(uchar)
MPSKIT_INTEGERS(short)
MPSKIT_INTEGERS(ushort)
MPSKIT_INTEGERS(int)
MPSKIT_INTEGERS(uint)
MPSKIT_INTEGERS(long)
MPSKIT_INTEGERS(ulong)
#undef MPSKIT_INTEGERS

// The factors have 24 bits by contract, so the plain 32-bit product is the answer.
#define MPSKIT_MULTIPLY_24(T)                                                        \
  constexpr T mul24(T x, T y) { return mpskit::integers::wrapping_multiply(x, y); }  \
  constexpr T mad24(T x, T y, T z) { return mpskit::integers::wrapping_add(mul24(x, y), z); }
MPSKIT_MULTIPLY_24(int)
MPSKIT_MULTIPLY_24(uint)
#undef MPSKIT_MULTIPLY_24

MPSKIT_VECTOR_1(popcount, mpskit::core::integer)
MPSKIT_VECTOR_1(clz, mpskit::core::integer)
MPSKIT_VECTOR_1(ctz, mpskit::core::integer)
MPSKIT_VECTOR_1(reverse_bits, mpskit::core::integer)
MPSKIT_VECTOR_2(absdiff, mpskit::core::integer)
MPSKIT_VECTOR_2(addsat, mpskit::core::integer)
MPSKIT_VECTOR_2(subsat, mpskit::core::integer)
MPSKIT_VECTOR_2(hadd, mpskit::core::integer)
MPSKIT_VECTOR_2(rhadd, mpskit::core::integer)
MPSKIT_VECTOR_2(mulhi, mpskit::core::integer)
MPSKIT_VECTOR_2(rotate, mpskit::core::integer)
MPSKIT_VECTOR_2(mul24, mpskit::core::integer)
MPSKIT_VECTOR_3(madhi, mpskit::core::integer)
MPSKIT_VECTOR_3(madsat, mpskit::core::integer)
MPSKIT_VECTOR_3(mad24, mpskit::core::integer)

template <mpskit::core::integer T, int N>
constexpr vec<T, N> extract_bits(vec<T, N> x, uint offset, uint count) {
  return mpskit::types::generate<T, N>([&](int i) { return extract_bits(x[i], offset, count); });
}
template <mpskit::core::integer T, int N>
constexpr vec<T, N> insert_bits(vec<T, N> base, vec<T, N> insert, uint offset, uint count) {
  return mpskit::types::generate<T, N>(
      [&](int i) { return insert_bits(base[i], insert[i], offset, count); });
}

} // namespace metal
