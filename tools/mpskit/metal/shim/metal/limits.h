// numeric_limits. Of a vector type it gives vectors, each component the element's.
#pragma once

namespace metal {

enum float_round_style {
  round_indeterminate = -1,
  round_toward_zero = 0,
  round_to_nearest = 1,
  round_toward_infinity = 2,
  round_toward_neg_infinity = 3
};

// Apple's own name for what numeric_limits inherits; kernels specialize it for their types.
template <class T>
struct _numeric_limits_impl {
  static constexpr bool is_specialized = false;
};
template <class T>
struct numeric_limits : _numeric_limits_impl<T> {};

namespace traits {

template <class T>
struct integer_limits {
  static constexpr bool is_specialized = true;
  static constexpr bool is_signed = mpskit::core::signed_integer<T>;
  static constexpr bool is_integer = true;
  static constexpr bool is_exact = true;
  static constexpr bool is_bounded = true;
  static constexpr bool is_modulo = !is_signed;
  static constexpr bool is_iec559 = false;
  static constexpr bool has_infinity = false;
  static constexpr bool has_quiet_NaN = false;
  static constexpr bool has_signaling_NaN = false;
  static constexpr int radix = 2;
  static constexpr int digits =
      mpskit::core::same<T, bool> ? 1 : int(8 * sizeof(T)) - int(is_signed);
  static constexpr int digits10 = digits * 30103 / 100000;
  static constexpr float_round_style round_style = round_toward_zero;

  static constexpr T max() {
    return static_cast<T>(~0ul >> (64 - digits));
  }
  static constexpr T min() {
    if constexpr (is_signed)
      return static_cast<T>(-static_cast<long>(max()) - 1);
    else
      return 0;
  }
  static constexpr T lowest() { return min(); }
  static constexpr T epsilon() { return 0; }
  static constexpr T round_error() { return 0; }
  static constexpr T infinity() { return 0; }
  static constexpr T quiet_NaN() { return 0; }
  static constexpr T signaling_NaN() { return 0; }
  static constexpr T denorm_min() { return 0; }
};

// An IEEE-style format: Mantissa counts the hidden bit, values lie below 2^MaxExponent.
template <class T, int Mantissa, int MaxExponent, int Digits10>
struct floating_limits {
  static constexpr bool is_specialized = true;
  static constexpr bool is_signed = true;
  static constexpr bool is_integer = false;
  static constexpr bool is_exact = false;
  static constexpr bool is_bounded = true;
  static constexpr bool is_modulo = false;
  static constexpr bool is_iec559 = true;
  static constexpr bool has_infinity = true;
  static constexpr bool has_quiet_NaN = true;
  static constexpr bool has_signaling_NaN = true;
  static constexpr int radix = 2;
  static constexpr int digits = Mantissa;
  static constexpr int digits10 = Digits10;
  static constexpr int max_digits10 = 2 + Mantissa * 30103 / 100000;
  static constexpr int max_exponent = MaxExponent;
  static constexpr int min_exponent = 3 - MaxExponent;
  static constexpr int max_exponent10 = MaxExponent * 30103 / 100000;
  static constexpr int min_exponent10 = -((MaxExponent - 2) * 30103 / 100000);
  static constexpr float_round_style round_style = round_to_nearest;

  static constexpr T max() {
    return T((2.0f - power(1 - Mantissa)) * power(MaxExponent - 1));
  }
  static constexpr T lowest() { return -max(); }
  static constexpr T min() { return T(power(2 - MaxExponent)); }
  static constexpr T denorm_min() { return T(power(2 - MaxExponent + 1 - Mantissa)); }
  static constexpr T epsilon() { return T(power(1 - Mantissa)); }
  static constexpr T round_error() { return T(0.5f); }
  static constexpr T infinity() { return T(__builtin_bit_cast(float, 0x7F800000u)); }
  static constexpr T quiet_NaN() { return T(__builtin_bit_cast(float, 0x7FC00000u)); }
  static constexpr T signaling_NaN() { return T(__builtin_bit_cast(float, 0x7FA00000u)); }

 private:
  // 2^exponent, exactly, subnormal results included.
  static constexpr float power(int exponent) {
    float result = 1.0f;
    for (; exponent > 0; --exponent) result *= 2.0f;
    for (; exponent < 0; ++exponent) result *= 0.5f;
    return result;
  }
};

} // namespace traits

template <mpskit::core::integer T>
struct numeric_limits<T> : traits::integer_limits<T> {};
template <>
struct numeric_limits<float> : traits::floating_limits<float, 24, 128, 6> {};
template <>
struct numeric_limits<half> : traits::floating_limits<half, 11, 16, 3> {};
template <>
struct numeric_limits<bfloat> : traits::floating_limits<bfloat, 8, 128, 2> {};

template <class T, int N>
struct numeric_limits<vec<T, N>> : numeric_limits<T> {
  using element = numeric_limits<T>;
  static constexpr vec<T, N> max() { return element::max(); }
  static constexpr vec<T, N> min() { return element::min(); }
  static constexpr vec<T, N> lowest() { return element::lowest(); }
  static constexpr vec<T, N> epsilon() { return element::epsilon(); }
  static constexpr vec<T, N> round_error() { return element::round_error(); }
  static constexpr vec<T, N> infinity() { return element::infinity(); }
  static constexpr vec<T, N> quiet_NaN() { return element::quiet_NaN(); }
  static constexpr vec<T, N> signaling_NaN() { return element::signaling_NaN(); }
  static constexpr vec<T, N> denorm_min() { return element::denorm_min(); }
};

template <class T>
struct numeric_limits<const T> : numeric_limits<T> {};
template <class T>
struct numeric_limits<volatile T> : numeric_limits<T> {};

} // namespace metal
