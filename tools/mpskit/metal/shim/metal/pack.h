// Normalised integers packed into one word, first component in the lowest bits.
#pragma once

#include "math.h"

namespace mpskit::packing {

template <class Word, class T, int N>
inline Word pack_unorm(metal::vec<T, N> value) {
  constexpr int bits = int(8 * sizeof(Word)) / N;
  constexpr float scale = float((1ul << bits) - 1);
  Word packed = 0;
  for (int i = 0; i < N; ++i)
    packed |= Word(metal::rint(metal::saturate(float(value[i])) * scale)) << (i * bits);
  return packed;
}

template <class Word, class T, int N>
inline Word pack_snorm(metal::vec<T, N> value) {
  constexpr int bits = int(8 * sizeof(Word)) / N;
  constexpr float scale = float((1ul << (bits - 1)) - 1);
  constexpr ulong mask = (1ul << bits) - 1;
  Word packed = 0;
  for (int i = 0; i < N; ++i) {
    const float clamped = metal::clamp(float(value[i]), -1.0f, 1.0f);
    packed |= Word(ulong(long(metal::rint(clamped * scale))) & mask) << (i * bits);
  }
  return packed;
}

template <class T, int N, class Word>
inline metal::vec<T, N> unpack_unorm(Word packed) {
  constexpr int bits = int(8 * sizeof(Word)) / N;
  constexpr ulong mask = (1ul << bits) - 1;
  return types::generate<T, N>(
      [&](int i) { return T(float(packed >> (i * bits) & mask) / float(mask)); });
}

template <class T, int N, class Word>
inline metal::vec<T, N> unpack_snorm(Word packed) {
  constexpr int bits = int(8 * sizeof(Word)) / N;
  constexpr float scale = float((1ul << (bits - 1)) - 1);
  return types::generate<T, N>([&](int i) {
    const long field = integers::extract_bits(long(packed), uint(i * bits), uint(bits));
    return T(metal::fmax(float(field) / scale, -1.0f));
  });
}

} // namespace mpskit::packing

namespace metal {

#define MPSKIT_PACK(T)                                                                             \
  inline uint pack_##T##_to_unorm4x8(vec<T, 4> x) { return mpskit::packing::pack_unorm<uint>(x); } \
  inline uint pack_##T##_to_snorm4x8(vec<T, 4> x) { return mpskit::packing::pack_snorm<uint>(x); } \
  inline uint pack_##T##_to_unorm2x16(vec<T, 2> x) {                                               \
    return mpskit::packing::pack_unorm<uint>(x);                                                   \
  }                                                                                                \
  inline uint pack_##T##_to_snorm2x16(vec<T, 2> x) {                                               \
    return mpskit::packing::pack_snorm<uint>(x);                                                   \
  }                                                                                                \
  inline vec<T, 4> unpack_unorm4x8_to_##T(uint x) {                                                \
    return mpskit::packing::unpack_unorm<T, 4>(x);                                                 \
  }                                                                                                \
  inline vec<T, 4> unpack_snorm4x8_to_##T(uint x) {                                                \
    return mpskit::packing::unpack_snorm<T, 4>(x);                                                 \
  }                                                                                                \
  inline vec<T, 2> unpack_unorm2x16_to_##T(uint x) {                                               \
    return mpskit::packing::unpack_unorm<T, 2>(x);                                                 \
  }                                                                                                \
  inline vec<T, 2> unpack_snorm2x16_to_##T(uint x) {                                               \
    return mpskit::packing::unpack_snorm<T, 2>(x);                                                 \
  }
MPSKIT_PACK(float)
MPSKIT_PACK(half)
#undef MPSKIT_PACK

} // namespace metal
