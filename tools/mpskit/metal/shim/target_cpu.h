// The cpu target: libm through the compiler's builtins, simdgroups through the runtime of abi.h.
#pragma once

#include "abi.h"

#define MPSKIT_LIBM(name) __builtin_##name##f

namespace mpskit::target {

// Set by the library's loader before the first kernel runs.
static const abi::Runtime* runtime;

constexpr unsigned simd_width = abi::simd_width;
constexpr unsigned char poison = abi::poison;

inline void copy_bytes(void* to, const void* from, unsigned long size) {
  __builtin_memcpy(to, from, size);
}
inline void fill_bytes(void* to, unsigned char value, unsigned long size) {
  __builtin_memset(to, value, size);
}

// ---- binary16, where the processor has it ----

#if defined(__FLT16_MANT_DIG__) &&  \
    (defined(__aarch64__) || (defined(__F16C__) && (defined(__clang__) || __GNUC__ >= 13)))
inline float half_to_float(unsigned short bits) {
  return static_cast<float>(__builtin_bit_cast(_Float16, bits));
}
inline unsigned short float_to_half(float value) {
  return __builtin_bit_cast(unsigned short, static_cast<_Float16>(value));
}
#define MPSKIT_HARDWARE_HALF
#elif defined(__F16C__)
inline float half_to_float(unsigned short bits) {
  using Halves = short __attribute__((vector_size(16)));
  return __builtin_ia32_vcvtph2ps(Halves{static_cast<short>(bits)})[0];
}
inline unsigned short float_to_half(float value) {
  using Floats = float __attribute__((vector_size(16)));
  constexpr int to_nearest_even = 0;
  return static_cast<unsigned short>(__builtin_ia32_vcvtps2ph(Floats{value}, to_nearest_even)[0]);
}
#define MPSKIT_HARDWARE_HALF
#endif

// ---- functions that libm lacks ----

constexpr double pi = 3.14159265358979323846;

inline float exp10(float x) {
  return static_cast<float>(__builtin_exp(x * 2.30258509299404568402));
}

inline float rsqrt(float x) { return static_cast<float>(1.0 / __builtin_sqrt(x)); }

// The remainder of x by 2, in [-1, 1], is exact; so is its reflection at a half.
inline float half_turns(float x) { return x - 2.0f * __builtin_rintf(x * 0.5f); }

inline float sinpi(float x) {
  const float turn = half_turns(x);
  const float distance = __builtin_fabsf(turn);
  const float near = distance > 0.5f ? 1.0f - distance : distance;
  // At an integer the zero has the sign of x, as an odd function's.
  return __builtin_copysignf(static_cast<float>(__builtin_sin(pi * near)), near == 0.0f ? x : turn);
}

inline float cospi(float x) {
  const float distance = __builtin_fabsf(half_turns(x));
  return static_cast<float>(__builtin_sin(pi * (0.5 - distance)));
}

// A NaN gives way to the other argument.
inline float fmin(float x, float y) { return x < y || y != y ? x : y; }
inline float fmax(float x, float y) { return x > y || y != y ? x : y; }

namespace fast {

inline float exp(float x) { return MPSKIT_LIBM(exp)(x); }
inline float exp2(float x) { return MPSKIT_LIBM(exp2)(x); }
inline float log(float x) { return MPSKIT_LIBM(log)(x); }
inline float log2(float x) { return MPSKIT_LIBM(log2)(x); }
inline float log10(float x) { return MPSKIT_LIBM(log10)(x); }
inline float sin(float x) { return MPSKIT_LIBM(sin)(x); }
inline float cos(float x) { return MPSKIT_LIBM(cos)(x); }

} // namespace fast

// ---- bits; the argument of the last two is not 0 ----

constexpr int count_ones(unsigned long bits) { return __builtin_popcountl(bits); }
constexpr int leading_zeros(unsigned long bits) { return __builtin_clzl(bits); }
constexpr int trailing_zeros(unsigned long bits) { return __builtin_ctzl(bits); }

// ---- threads ----

template <class T>
struct Gathered : abi::Lanes {
  T operator[](unsigned source) const {
    T value;
    copy_bytes(&value, static_cast<const char*>(values) + source * sizeof(T), sizeof value);
    return value;
  }

  // The same in every lane of a simdgroup, and so left to the first of them.
  template <unsigned Width, class F>
  T butterfly(unsigned members, const T& identity, F combine) const {
    const auto combined = [&] { return combine_lanes<Width>(members, identity, combine); };
    if constexpr (Width == simd_width)
      return once(combined);
    else
      return combined();
  }

  // compute(), the same in every lane and so left to the first of them.
  template <class F>
  auto once(F compute) const {
    using R = decltype(compute());
    static_assert(sizeof(R) <= abi::lane_slot);
    if (*has_shared) {
      R result;
      copy_bytes(&result, shared, sizeof result);
      return result;
    }
    const R result = compute();
    copy_bytes(shared, &result, sizeof result);
    *has_shared = true;
    return result;
  }

 private:
  template <unsigned Width, class F>
  T combine_lanes(unsigned members, const T& identity, F combine) const {
    const unsigned first = lane / Width * Width;
    T values[Width];
    for (unsigned i = 0; i < Width; ++i) values[i] = (*this)[first + i];
    if (members != ~0u)
      for (unsigned i = 0; i < Width; ++i)
        if (!(members >> (first + i) & 1u)) values[i] = identity;
    for (unsigned distance = Width / 2; distance > 0; distance /= 2)
      for (unsigned i = 0; i < distance; ++i) values[i] = combine(values[i], values[i + distance]);
    return values[0];
  }
};

template <class T>
inline Gathered<T> gather(const T& value) {
  static_assert(sizeof(T) <= abi::lane_slot);
  return {runtime->simd_gather(&value, sizeof value)};
}

inline unsigned lane() { return gather<unsigned char>(0).lane; }

struct Ballot {
  unsigned ayes;
  unsigned active;
  unsigned lane;
};

inline Ballot ballot(bool aye) {
  const auto lanes = gather(static_cast<unsigned char>(aye));
  const unsigned ayes = lanes.once([&] {
    unsigned bits = 0;
    for (unsigned i = 0; i < simd_width; ++i) bits |= unsigned(lanes[i] & 1u) << i;
    return bits & lanes.active;
  });
  return {ayes, lanes.active, lanes.lane};
}

inline void simdgroup_barrier(unsigned flags) { runtime->simdgroup_barrier(flags); }
inline void threadgroup_barrier(unsigned flags) { runtime->threadgroup_barrier(flags); }

// ---- atomics; only a relaxed order is told from the sequentially consistent one ----

template <class Word>
inline Word atomic_load(const volatile Word* at, bool relaxed) {
  return relaxed ? __atomic_load_n(at, __ATOMIC_RELAXED) : __atomic_load_n(at, __ATOMIC_SEQ_CST);
}
template <class Word>
inline void atomic_store(volatile Word* at, Word value, bool relaxed) {
  if (relaxed)
    __atomic_store_n(at, value, __ATOMIC_RELAXED);
  else
    __atomic_store_n(at, value, __ATOMIC_SEQ_CST);
}
template <class Word>
inline bool atomic_compare_exchange(
    volatile Word* at, Word* expected, Word desired, bool relaxed) {
  constexpr bool weak = true;
  return relaxed
      ? __atomic_compare_exchange_n(
            at, expected, desired, weak, __ATOMIC_RELAXED, __ATOMIC_RELAXED)
      : __atomic_compare_exchange_n(
            at, expected, desired, weak, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}
inline void atomic_fence(bool relaxed) {
  if (!relaxed) __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

#define MPSKIT_FETCH(name)                                                  \
  template <class Word>                                                     \
  inline Word atomic_##name(volatile Word* at, Word value, bool relaxed) {  \
    return relaxed ? __atomic_##name(at, value, __ATOMIC_RELAXED)           \
                   : __atomic_##name(at, value, __ATOMIC_SEQ_CST);          \
  }
MPSKIT_FETCH(exchange_n)
MPSKIT_FETCH(fetch_add)
MPSKIT_FETCH(fetch_sub)
MPSKIT_FETCH(fetch_and)
MPSKIT_FETCH(fetch_or)
MPSKIT_FETCH(fetch_xor)
#undef MPSKIT_FETCH

} // namespace mpskit::target
