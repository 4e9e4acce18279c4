// Math and common functions on floating-point numbers, and the namespaces precise and fast.
#pragma once

#include "integer.h"
#include "overloads.h"

namespace mpskit {

// x + y, an inexact sum rounded to the neighbour with an odd last bit. Rounding that once more, to
// a format with at least two bits less, gives what rounding the exact sum would.
inline float sum_to_odd(float x, float y) {
  const float sum = x + y;
  const float x_part = sum - y, y_part = sum - x_part;
  const float error = (x - x_part) + (y - y_part);
  const int bits = __builtin_bit_cast(int, sum);
  const bool inexact = error < 0.0f || error > 0.0f;
  if (!inexact || (bits & 1)) return sum;
  return __builtin_bit_cast(float, (error > 0.0f) == (sum > 0.0f) ? bits + 1 : bits - 1);
}

} // namespace mpskit

namespace metal {

MPSKIT_MATH_1(acos, MPSKIT_LIBM(acos)(x))
MPSKIT_MATH_1(acosh, MPSKIT_LIBM(acosh)(x))
MPSKIT_MATH_1(asin, MPSKIT_LIBM(asin)(x))
MPSKIT_MATH_1(asinh, MPSKIT_LIBM(asinh)(x))
MPSKIT_MATH_1(atan, MPSKIT_LIBM(atan)(x))
MPSKIT_MATH_1(atanh, MPSKIT_LIBM(atanh)(x))
MPSKIT_MATH_1(ceil, MPSKIT_LIBM(ceil)(x))
MPSKIT_MATH_1(cos, MPSKIT_LIBM(cos)(x))
MPSKIT_MATH_1(cosh, MPSKIT_LIBM(cosh)(x))
MPSKIT_MATH_1(exp, MPSKIT_LIBM(exp)(x))
MPSKIT_MATH_1(exp2, MPSKIT_LIBM(exp2)(x))
MPSKIT_MATH_1(fabs, MPSKIT_LIBM(fabs)(x))
MPSKIT_MATH_1(floor, MPSKIT_LIBM(floor)(x))
MPSKIT_MATH_1(log, MPSKIT_LIBM(log)(x))
MPSKIT_MATH_1(log10, MPSKIT_LIBM(log10)(x))
MPSKIT_MATH_1(log2, MPSKIT_LIBM(log2)(x))
MPSKIT_MATH_1(rint, MPSKIT_LIBM(rint)(x))
MPSKIT_MATH_1(round, MPSKIT_LIBM(round)(x))
MPSKIT_MATH_1(sin, MPSKIT_LIBM(sin)(x))
MPSKIT_MATH_1(sinh, MPSKIT_LIBM(sinh)(x))
MPSKIT_MATH_1(sqrt, MPSKIT_LIBM(sqrt)(x))
MPSKIT_MATH_1(tan, MPSKIT_LIBM(tan)(x))
MPSKIT_MATH_1(tanh, MPSKIT_LIBM(tanh)(x))
MPSKIT_MATH_1(trunc, MPSKIT_LIBM(trunc)(x))
MPSKIT_MATH_1(exp10, mpskit::target::exp10(x))
MPSKIT_MATH_1(rsqrt, mpskit::target::rsqrt(x))
MPSKIT_MATH_1(sinpi, mpskit::target::sinpi(x))
MPSKIT_MATH_1(cospi, mpskit::target::cospi(x))
MPSKIT_MATH_1(tanpi, mpskit::target::sinpi(x) / mpskit::target::cospi(x))
MPSKIT_SCALAR_MATH_1(abs, MPSKIT_LIBM(fabs)(x))
MPSKIT_MATH_1(saturate, x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f)
MPSKIT_MATH_1(sign, x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x == 0.0f ? x : 0.0f)

MPSKIT_MATH_2(atan2, MPSKIT_LIBM(atan2)(x, y))
MPSKIT_MATH_2(copysign, MPSKIT_LIBM(copysign)(x, y))
MPSKIT_MATH_2(divide, x / y)
MPSKIT_MATH_2(fdim, MPSKIT_LIBM(fdim)(x, y))
MPSKIT_MATH_2(fmod, MPSKIT_LIBM(fmod)(x, y))
MPSKIT_MATH_2(pow, MPSKIT_LIBM(pow)(x, y))
MPSKIT_MATH_2(powr, x < 0.0f ? NAN : MPSKIT_LIBM(pow)(x, y))
MPSKIT_MATH_2(step, y < x ? 0.0f : 1.0f)
MPSKIT_MATH_2(fmin, mpskit::target::fmin(x, y))
MPSKIT_MATH_2(fmax, mpskit::target::fmax(x, y))
MPSKIT_SCALAR_MATH_2(min, fmin(x, y))
MPSKIT_SCALAR_MATH_2(max, fmax(x, y))

MPSKIT_SCALAR_MATH_3(clamp, fmin(fmax(x, y), z))
MPSKIT_MATH_3(mix, x + (y - x) * z)
MPSKIT_MATH_3(fmin3, fmin(fmin(x, y), z))
MPSKIT_MATH_3(fmax3, fmax(fmax(x, y), z))
MPSKIT_MATH_3(fmedian3, fmax(fmin(x, y), fmin(fmax(x, y), z)))
MPSKIT_SCALAR_MATH_3(min3, fmin3(x, y, z))
MPSKIT_SCALAR_MATH_3(max3, fmax3(x, y, z))
MPSKIT_SCALAR_MATH_3(median3, fmedian3(x, y, z))

// Names that integers share.
MPSKIT_VECTOR_1(abs, mpskit::arithmetic_element)
MPSKIT_VECTOR_2(min, mpskit::arithmetic_element)
MPSKIT_VECTOR_2(max, mpskit::arithmetic_element)
MPSKIT_VECTOR_3(clamp, mpskit::arithmetic_element)
MPSKIT_VECTOR_3(min3, mpskit::arithmetic_element)
MPSKIT_VECTOR_3(max3, mpskit::arithmetic_element)
MPSKIT_VECTOR_3(median3, mpskit::arithmetic_element)

inline float smoothstep(float low, float high, float x) {
  const float t = saturate((x - low) / (high - low));
  return t * t * (3.0f - 2.0f * t);
}
MPSKIT_FOR_MATH_SMALL(MPSKIT_SMALL_3, smoothstep)
MPSKIT_VECTOR_3(smoothstep, mpskit::math_element)

inline float fma(float x, float y, float z) { return MPSKIT_LIBM(fma)(x, y, z); }
#define MPSKIT_SMALL_FMA(T, name)  \
  inline T name(T x, T y, T z) { return T(mpskit::sum_to_odd(float(x) * float(y), float(z))); }
MPSKIT_FOR_MATH_SMALL(MPSKIT_SMALL_FMA, fma)
#undef MPSKIT_SMALL_FMA
MPSKIT_VECTOR_3(fma, mpskit::math_element)

// x - floor(x) rounds up to 1 for tiny negative x; the result stays below 1 in its own format.
#define MPSKIT_FRACT(T, below_one)                                                  \
  inline T fract(T x) {                                                             \
    const float fraction = float(x) - MPSKIT_LIBM(floor)(float(x));                 \
    return T(fraction < below_one || fraction != fraction ? fraction : below_one);  \
  }
MPSKIT_FRACT(float, 0x1.fffffep-1f)
MPSKIT_FRACT(half, 0x1.ffcp-1f)
#if __METAL_VERSION__ >= 400
MPSKIT_FRACT(bfloat, 0x1.fep-1f)
#endif
#undef MPSKIT_FRACT
MPSKIT_VECTOR_1(fract, mpskit::math_element)

// ---- integers beside the floating-point argument ----

inline int ilogb(float x) {
  return x == 0.0f || x != x ? FP_ILOGB0 : MPSKIT_LIBM(ilogb)(x);
}
inline int ilogb(half x) { return ilogb(float(x)); }
MPSKIT_VECTOR_1(ilogb, mpskit::math_element)

inline float ldexp(float x, int exponent) { return MPSKIT_LIBM(ldexp)(x, exponent); }
inline half ldexp(half x, int exponent) { return half(ldexp(float(x), exponent)); }

inline float frexp(float x, int& exponent) { return MPSKIT_LIBM(frexp)(x, &exponent); }
inline half frexp(half x, int& exponent) { return half(frexp(float(x), exponent)); }

template <class T, int N>
  requires mpskit::math_element<T>
inline vec<T, N> ldexp(vec<T, N> x, vec<int, N> exponent) {
  return mpskit::types::generate<T, N>([&](int i) { return ldexp(x[i], exponent[i]); });
}
template <class T, int N>
  requires mpskit::math_element<T>
inline vec<T, N> frexp(vec<T, N> x, vec<int, N>& exponent) {
  return mpskit::types::generate<T, N>([&](int i) { return frexp(x[i], exponent[i]); });
}

// ---- two results ----

inline float modf(float x, float& whole) { return MPSKIT_LIBM(modf)(x, &whole); }
inline half modf(half x, half& whole) {
  float wide;
  const half fraction = modf(float(x), wide);
  whole = wide;
  return fraction;
}

inline float sincos(float x, float& cosine) {
  cosine = cos(x);
  return sin(x);
}
inline half sincos(half x, half& cosine) {
  cosine = cos(x);
  return sin(x);
}

#define MPSKIT_VECTOR_TWO_RESULTS(name)                                                  \
  template <class T, int N>                                                              \
    requires mpskit::math_element<T>                                                     \
  inline vec<T, N> name(vec<T, N> x, vec<T, N>& second) {                                \
    return mpskit::types::generate<T, N>([&](int i) { return name(x[i], second[i]); });  \
  }
MPSKIT_VECTOR_TWO_RESULTS(modf)
MPSKIT_VECTOR_TWO_RESULTS(sincos)
#undef MPSKIT_VECTOR_TWO_RESULTS

// ---- neighbours, in the argument's own format ----

inline float nextafter(float x, float y) { return MPSKIT_LIBM(nextafter)(x, y); }
inline half nextafter(half x, half y) {
  if (x != x || y != y) return half(NAN);
  if (x == y) return y;
  if (x == 0) return half::from_bits(ushort(signbit(y) ? 0x8001 : 1));
  const bool away_from_zero = (x < y) == (x > 0);
  return half::from_bits(ushort(away_from_zero ? x.bits + 1 : x.bits - 1));
}
MPSKIT_VECTOR_2(nextafter, mpskit::math_element)

// ---- the same functions under their accuracy's name ----

#define MPSKIT_FOR_EACH_FAST(use)  \
  use(exp) use(exp2) use(log) use(log2) use(log10) use(sin) use(cos)
#define MPSKIT_FOR_EACH_MATH(use)                                                               \
  use(abs) use(acos) use(acosh) use(asin) use(asinh) use(atan) use(atan2) use(atanh) use(ceil)  \
  use(clamp) use(copysign) use(cosh) use(cospi) use(divide) use(exp10) use(fabs) use(fdim)      \
  use(floor) use(fma) use(fmax) use(fmax3) use(fmedian3) use(fmin) use(fmin3) use(fmod)         \
  use(fract) use(frexp) use(ilogb) use(ldexp) use(max) use(max3) use(median3) use(min)          \
  use(min3) use(mix) use(modf) use(nextafter) use(pow) use(powr) use(rint) use(round)           \
  use(rsqrt) use(saturate) use(sign) use(sincos) use(sinh) use(sinpi) use(smoothstep)           \
  use(sqrt) use(step) use(tan) use(tanh) use(tanpi) use(trunc)
#define MPSKIT_USE(name) using metal::name;
#define MPSKIT_FAST(name) MPSKIT_MATH_1(name, mpskit::target::fast::name(x))
namespace precise {
MPSKIT_FOR_EACH_MATH(MPSKIT_USE)
MPSKIT_FOR_EACH_FAST(MPSKIT_USE)
} // namespace precise
namespace fast {
MPSKIT_FOR_EACH_MATH(MPSKIT_USE)
MPSKIT_FOR_EACH_FAST(MPSKIT_FAST)
} // namespace fast
#undef MPSKIT_FAST
#undef MPSKIT_USE
#undef MPSKIT_FOR_EACH_MATH
#undef MPSKIT_FOR_EACH_FAST

} // namespace metal
