// Normalised integers packed into one word, first component in the lowest bits. A component c of a
// field of n bits stands for c / (2^n - 1), a signed one for c / (2^(n-1) - 1).
#pragma once

#include "math.h"

namespace mpskit::packing {

// The widths of a word's fields, from the lowest bits up.
template <class W, int... Bits>
struct Fields {
  using Word = W;
  static constexpr int count = sizeof...(Bits);
  static constexpr int width[] = {Bits...};
};
using Fields4x8 = Fields<uint, 8, 8, 8, 8>;
using Fields2x16 = Fields<uint, 16, 16>;
using Fields10a2 = Fields<uint, 10, 10, 10, 2>;
using Fields565 = Fields<ushort, 5, 6, 5>;

constexpr float largest(int bits) { return float((1u << bits) - 1u); }

// The word whose field i is the lowest bits of encode(i, width).
template <class F, class Encode>
inline typename F::Word pack_fields(Encode encode) {
  uint packed = 0;
  int shift = 0;
  for (int i = 0; i < F::count; shift += F::width[i], ++i)
    packed |= (uint(encode(i, F::width[i])) & ((1u << F::width[i]) - 1u)) << shift;
  return static_cast<typename F::Word>(packed);
}

// The vector of decode(i, field i, width).
template <class F, class T, class Decode>
inline metal::vec<T, F::count> unpack_fields(uint packed, Decode decode) {
  metal::vec<T, F::count> result;
  int shift = 0;
  for (int i = 0; i < F::count; shift += F::width[i], ++i)
    result[i] = T(decode(i, packed >> shift & ((1u << F::width[i]) - 1u), F::width[i]));
  return result;
}

inline uint to_unorm(float value, int bits) {
  return uint(metal::rint(metal::saturate(value) * largest(bits)));
}
// A NaN becomes 0.
inline int to_snorm(float value, int bits) {
  const float clamped = value != value ? 0.0f : metal::clamp(value, -1.0f, 1.0f);
  return int(metal::rint(clamped * largest(bits - 1)));
}
inline float from_unorm(uint field, int bits) { return float(field) / largest(bits); }
inline float from_snorm(uint field, int bits) {
  const int value = integers::extract_bits(int(field), 0u, uint(bits));
  return metal::fmax(float(value) / largest(bits - 1), -1.0f);
}

inline float to_srgb(float linear) {
  const float c = metal::saturate(linear);
  return c < 0.0031308f ? 12.92f * c : 1.055f * metal::powr(c, 1.0f / 2.4f) - 0.055f;
}
inline float from_srgb(float c) {
  return c <= 0.04045f ? c / 12.92f : metal::powr((c + 0.055f) / 1.055f, 2.4f);
}

template <class F, class V>
inline typename F::Word pack_unorm(const V& value) {
  return pack_fields<F>([&](int i, int bits) { return to_unorm(float(value[i]), bits); });
}
template <class F, class V>
inline typename F::Word pack_snorm(const V& value) {
  return pack_fields<F>([&](int i, int bits) { return to_snorm(float(value[i]), bits); });
}
// The fourth component, alpha, is linear.
template <class F, class V>
inline typename F::Word pack_srgb(const V& value) {
  return pack_fields<F>([&](int i, int bits) {
    return to_unorm(i == 3 ? float(value[i]) : to_srgb(float(value[i])), bits);
  });
}
template <class F, class T>
inline auto unpack_unorm(uint packed) {
  return unpack_fields<F, T>(packed, [](int, uint field, int bits) {
    return from_unorm(field, bits);
  });
}
template <class F, class T>
inline auto unpack_snorm(uint packed) {
  return unpack_fields<F, T>(packed, [](int, uint field, int bits) {
    return from_snorm(field, bits);
  });
}
template <class F, class T>
inline auto unpack_srgb(uint packed) {
  return unpack_fields<F, T>(packed, [](int i, uint field, int bits) {
    return i == 3 ? from_unorm(field, bits) : from_srgb(from_unorm(field, bits));
  });
}

} // namespace mpskit::packing

namespace metal {

// pack_<T>_to_<to> and unpack_<from>_to_<T>, by the functions above of that kind.
#define MPSKIT_PACK(T, kind, to, from, F)                                                    \
  inline mpskit::packing::F::Word pack_##T##_to_##to(vec<T, mpskit::packing::F::count> x) {  \
    return mpskit::packing::pack_##kind<mpskit::packing::F>(x);                              \
  }                                                                                          \
  inline vec<T, mpskit::packing::F::count> unpack_##from##_to_##T(                           \
      mpskit::packing::F::Word x) {                                                          \
    return mpskit::packing::unpack_##kind<mpskit::packing::F, T>(x);                         \
  }
#define MPSKIT_PACK_ALL(T)                                       \
  MPSKIT_PACK(T, unorm, unorm4x8, unorm4x8, Fields4x8)           \
  MPSKIT_PACK(T, snorm, snorm4x8, snorm4x8, Fields4x8)           \
  MPSKIT_PACK(T, srgb, srgb_unorm4x8, unorm4x8_srgb, Fields4x8)  \
  MPSKIT_PACK(T, unorm, unorm2x16, unorm2x16, Fields2x16)        \
  MPSKIT_PACK(T, snorm, snorm2x16, snorm2x16, Fields2x16)        \
  MPSKIT_PACK(T, unorm, unorm10a2, unorm10a2, Fields10a2)        \
  MPSKIT_PACK(T, unorm, unorm565, unorm565, Fields565)
MPSKIT_PACK_ALL(float)
MPSKIT_PACK_ALL(half)
#if __METAL_VERSION__ >= 400
MPSKIT_PACK(float, snorm, snorm10a2, snorm10a2, Fields10a2)
MPSKIT_PACK(half, snorm, snorm10a2, snorm10a2, Fields10a2)
#endif
#undef MPSKIT_PACK_ALL
#undef MPSKIT_PACK

} // namespace metal
