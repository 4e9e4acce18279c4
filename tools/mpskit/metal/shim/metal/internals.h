// Names from inside Apple's standard library that published kernels use: MLX's headers add overloads
// for bfloat through them, behind `#pragma METAL internals : enable`.
#pragma once

#include "math.h"
#include "quadgroup.h"
#include "relational.h"
#include "simdgroup.h"

#define __METAL_PRECISE_MATH__ 0
#define __METAL_FAST_MATH__ 1
#define __METAL_MAYBE_FAST_MATH__ 2

// The mode, precise or fast, comes last.
#define MPSKIT_INTERNAL_1(name, function)          \
  template <class T>                               \
  inline auto __metal_##name(T x, int = 0) {       \
    return ::metal::function(x);                   \
  }
#define MPSKIT_INTERNAL_2(name, function)          \
  template <class T, class U>                      \
  inline auto __metal_##name(T x, U y, int = 0) {  \
    return ::metal::function(x, y);                \
  }
#define MPSKIT_INTERNAL_3(name, function)              \
  template <class T>                                   \
  inline auto __metal_##name(T x, T y, T z, int = 0) { \
    return ::metal::function(x, y, z);                 \
  }

// clang-format off
MPSKIT_INTERNAL_1(acos, acos) MPSKIT_INTERNAL_1(acosh, acosh) MPSKIT_INTERNAL_1(asin, asin)
MPSKIT_INTERNAL_1(asinh, asinh) MPSKIT_INTERNAL_1(atan, atan) MPSKIT_INTERNAL_1(atanh, atanh)
MPSKIT_INTERNAL_1(ceil, ceil) MPSKIT_INTERNAL_1(cos, cos) MPSKIT_INTERNAL_1(cosh, cosh)
MPSKIT_INTERNAL_1(cospi, cospi) MPSKIT_INTERNAL_1(exp, exp) MPSKIT_INTERNAL_1(exp10, exp10)
MPSKIT_INTERNAL_1(exp2, exp2) MPSKIT_INTERNAL_1(fabs, fabs) MPSKIT_INTERNAL_1(floor, floor)
MPSKIT_INTERNAL_1(fract, fract) MPSKIT_INTERNAL_1(log, log) MPSKIT_INTERNAL_1(log10, log10)
MPSKIT_INTERNAL_1(log2, log2) MPSKIT_INTERNAL_1(rint, rint) MPSKIT_INTERNAL_1(round, round)
MPSKIT_INTERNAL_1(rsqrt, rsqrt) MPSKIT_INTERNAL_1(sin, sin) MPSKIT_INTERNAL_1(sinh, sinh)
MPSKIT_INTERNAL_1(sinpi, sinpi) MPSKIT_INTERNAL_1(sqrt, sqrt) MPSKIT_INTERNAL_1(tan, tan)
MPSKIT_INTERNAL_1(tanh, tanh) MPSKIT_INTERNAL_1(tanpi, tanpi) MPSKIT_INTERNAL_1(trunc, trunc)
MPSKIT_INTERNAL_2(atan2, atan2) MPSKIT_INTERNAL_2(divide, divide) MPSKIT_INTERNAL_2(fmax, fmax)
MPSKIT_INTERNAL_2(fmin, fmin) MPSKIT_INTERNAL_2(fmod, fmod) MPSKIT_INTERNAL_2(ldexp, ldexp)
MPSKIT_INTERNAL_2(nextafter, nextafter) MPSKIT_INTERNAL_2(pow, pow) MPSKIT_INTERNAL_2(powr, powr)
MPSKIT_INTERNAL_3(fma, fma) MPSKIT_INTERNAL_3(fmax3, fmax3) MPSKIT_INTERNAL_3(fmedian3, fmedian3)
MPSKIT_INTERNAL_3(fmin3, fmin3)
// clang-format on

#undef MPSKIT_INTERNAL_1
#undef MPSKIT_INTERNAL_2
#undef MPSKIT_INTERNAL_3

template <class T>
inline auto __metal_frexp(T x, int* exponent) {
  return ::metal::frexp(x, *exponent);
}

#define MPSKIT_INTERNAL_SIMD(name)                       \
  template <class T, class... Rest>                      \
  inline T __metal_simd_##name(T data, Rest... rest) {   \
    return ::metal::simd_##name(data, rest...);          \
  }
MPSKIT_INTERNAL_SIMD(broadcast)
MPSKIT_INTERNAL_SIMD(shuffle)
MPSKIT_INTERNAL_SIMD(shuffle_and_fill_down)
MPSKIT_INTERNAL_SIMD(shuffle_and_fill_up)
MPSKIT_INTERNAL_SIMD(shuffle_down)
MPSKIT_INTERNAL_SIMD(shuffle_rotate_down)
MPSKIT_INTERNAL_SIMD(shuffle_rotate_up)
MPSKIT_INTERNAL_SIMD(shuffle_up)
MPSKIT_INTERNAL_SIMD(shuffle_xor)
MPSKIT_INTERNAL_SIMD(max)
MPSKIT_INTERNAL_SIMD(min)
MPSKIT_INTERNAL_SIMD(prefix_exclusive_product)
MPSKIT_INTERNAL_SIMD(prefix_exclusive_sum)
MPSKIT_INTERNAL_SIMD(prefix_inclusive_product)
MPSKIT_INTERNAL_SIMD(prefix_inclusive_sum)
MPSKIT_INTERNAL_SIMD(product)
MPSKIT_INTERNAL_SIMD(sum)
#undef MPSKIT_INTERNAL_SIMD

// Apple's takes a float, too, and works on its bits.
inline float __metal_simd_xor(float data) {
  return as_type<float>(::metal::simd_xor(as_type<uint>(data)));
}
template <class T>
inline T __metal_simd_xor(T data) {
  return ::metal::simd_xor(data);
}

template <class T>
constexpr T __metal_get_simdgroup_size(T) {
  return T(mpskit::target::simd_width);
}

namespace metal {

template <class... T>
using _conjunction = conjunction<T...>;
template <class T>
using __is_valid_simdgroup_type = bool_constant<mpskit::simdgroup::reducible<T>>;

template <class... T>
using _disjunction = disjunction<T...>;

} // namespace metal
