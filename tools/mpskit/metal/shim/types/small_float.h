// half (IEEE binary16) and bfloat: 16-bit formats whose every operation is computed in float and
// rounded to nearest even. float's 24 bits are more than twice those of either format plus two, so
// rounding the float result once more gives the correctly rounded one.
#pragma once

namespace mpskit::types {

struct binary16 {
  static constexpr bool takes_float = true;

  // Above 2^24, where float rounds, every integer is infinite.
  template <core::integer I>
  static constexpr float widened(I value) {
    return static_cast<float>(value);
  }

  static constexpr float to_float(unsigned short bits) {
#ifdef MPSKIT_HARDWARE_HALF
    if (!__builtin_is_constant_evaluated()) return target::half_to_float(bits);
#endif
    return decode(bits);
  }
  static constexpr unsigned short from_float(float value) {
#ifdef MPSKIT_HARDWARE_HALF
    if (!__builtin_is_constant_evaluated()) return target::float_to_half(value);
#endif
    return encode(value);
  }

  static constexpr float decode(unsigned short bits) {
    const unsigned sign = (bits & 0x8000u) << 16;
    const unsigned body = bits & 0x7FFFu;
    // Multiplying by 2^112 moves the exponent's bias, and normalises subnormals, exactly.
    const float scaled = __builtin_bit_cast(float, body << 13) * 0x1p112f;
    const unsigned special = 0x7F800000u | body << 13 | (body > 0x7C00u ? 0x00400000u : 0u);
    const unsigned magnitude = body >= 0x7C00u ? special : __builtin_bit_cast(unsigned, scaled);
    return __builtin_bit_cast(float, sign | magnitude);
  }

  static constexpr unsigned short encode(float value) {
    const unsigned bits = __builtin_bit_cast(unsigned, value);
    const unsigned body = bits & 0x7FFFFFFFu;
    // Below 2^-14 the result counts units of 2^-24, which is where adding 0.5 rounds to.
    const float shifted = __builtin_bit_cast(float, body) + 0.5f;
    const unsigned subnormal = __builtin_bit_cast(unsigned, shifted) - 0x3F000000u;
    const unsigned to_even = 0xFFFu + (body >> 13 & 1u);
    const unsigned normal = (body - (112u << 23) + to_even) >> 13;
    const unsigned special = body > 0x7F800000u ? 0x7E00u | (body >> 13 & 0x3FFu) : 0x7C00u;
    const unsigned finite = body < 0x38800000u ? subnormal : normal;
    const unsigned magnitude = body >= 0x47800000u ? special : finite;
    return static_cast<unsigned short>((bits >> 16 & 0x8000u) | magnitude);
  }
};

struct brain16 {
  // "Neither float nor half can be implicitly converted to bfloat."
  static constexpr bool takes_float = false;

  // As a float whose last bit is set where others were lost, so that rounding it gives what
  // rounding the integer would.
  template <core::integer I>
  static constexpr float widened(I value) {
    constexpr int float_digits = 24;
    const unsigned long bits = static_cast<unsigned long>(value);
    const unsigned long magnitude = value < 0 ? 0ul - bits : bits;
    if (sizeof(I) < 4 || magnitude >> float_digits == 0) return static_cast<float>(value);
    const int lost = 64 - float_digits - target::leading_zeros(magnitude);
    const bool inexact = (magnitude & ((1ul << lost) - 1ul)) != 0;
    const float rounded = float(magnitude >> lost | (inexact ? 1ul : 0ul)) * float(1ul << lost);
    return value < 0 ? -rounded : rounded;
  }

  static constexpr float to_float(unsigned short bits) {
#ifdef MPSKIT_HARDWARE_BFLOAT
    if (!__builtin_is_constant_evaluated()) return target::bfloat_to_float(bits);
#endif
    return __builtin_bit_cast(float, static_cast<unsigned>(bits) << 16);
  }
  static constexpr unsigned short from_float(float value) {
#ifdef MPSKIT_HARDWARE_BFLOAT
    if (!__builtin_is_constant_evaluated()) return target::float_to_bfloat(value);
#endif
    const unsigned bits = __builtin_bit_cast(unsigned, value);
    const unsigned rounded = (bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16;
    const unsigned quiet = bits >> 16 | 0x40u;
    return static_cast<unsigned short>(value != value ? quiet : rounded);
  }
};

template <class Format>
struct small_float {
  unsigned short bits;

  small_float() = default;
  explicit(!Format::takes_float) constexpr small_float(float value)
      : bits(Format::from_float(value)) {}
  // Apart from the one above, so that braces take an integer without a narrowing error.
  template <core::integer I>
  constexpr small_float(I value) : small_float(Format::widened(value)) {}

  static constexpr small_float from_bits(unsigned short bits) {
    small_float result(0.0f);
    result.bits = bits;
    return result;
  }

  constexpr operator float() const { return Format::to_float(bits); }

  // From what converts to bool: with a built-in type on the left that takes no second conversion of
  // the user's.
  template <class Flag>
    requires requires(const Flag& flag) { flag.operator bool(); }
  constexpr small_float& operator=(const Flag& flag) {
    return *this = small_float(static_cast<bool>(flag));
  }

  constexpr small_float& operator++() { return *this = *this + 1; }
  constexpr small_float& operator--() { return *this = *this - 1; }
  constexpr small_float operator++(int) {
    const small_float before = *this;
    ++*this;
    return before;
  }
  constexpr small_float operator--(int) {
    const small_float before = *this;
    --*this;
    return before;
  }

  friend constexpr small_float operator+(small_float value) { return value; }
  friend constexpr small_float operator-(small_float value) {
    return from_bits(value.bits ^ 0x8000u);
  }

// With its own kind or an integer the result keeps the format, with float it is float. Comparisons
// need no operators: both sides convert to float.
#define MPSKIT_OPERATOR(op)                                                      \
  friend constexpr small_float operator op(small_float a, small_float b) {       \
    return small_float(float(a) op float(b));                                    \
  }                                                                              \
  template <core::integer I>                                                     \
  friend constexpr small_float operator op(small_float a, I b) {                 \
    return a op small_float(b);                                                  \
  }                                                                              \
  template <core::integer I>                                                     \
  friend constexpr small_float operator op(I a, small_float b) {                 \
    return small_float(a) op b;                                                  \
  }                                                                              \
  friend constexpr float operator op(small_float a, float b) {                   \
    return float(a) op b;                                                        \
  }                                                                              \
  friend constexpr float operator op(float a, small_float b) {                   \
    return a op float(b);                                                        \
  }                                                                              \
  template <class Other>                                                         \
  friend constexpr float operator op(small_float, small_float<Other>) = delete;  \
  template <class T>                                                             \
  constexpr small_float& operator op##=(T other) {                               \
    return *this = small_float(*this op other);                                  \
  }
  MPSKIT_OPERATOR(+)
  MPSKIT_OPERATOR(-)
  MPSKIT_OPERATOR(*)
  MPSKIT_OPERATOR(/)
#undef MPSKIT_OPERATOR
};

using half = small_float<binary16>;
using bfloat = small_float<brain16>;

static_assert(sizeof(half) == 2 && alignof(half) == 2);

template <class T>
concept small = core::one_of<T, half, bfloat>;
template <class T>
concept floating = core::one_of<T, float, half, bfloat>;
template <class T>
concept scalar = core::integer<T> || floating<T> || core::same<T, double>;

} // namespace mpskit::types

using mpskit::types::bfloat;
using mpskit::types::half;

namespace metal {
using mpskit::types::bfloat;
using mpskit::types::half;
} // namespace metal
