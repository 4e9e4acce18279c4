// The cuda target: libdevice's functions, warps as simdgroups, CUDA's atomics. NVRTC puts CUDA's own
// names in front of everything; the program stands in a namespace of its own, behind which they are
// hidden, and reaches them here with a leading ::.
#pragma once

#include "thread.h"

#define MPSKIT_LIBM(name) ::name##f

namespace mpskit::target {

constexpr unsigned simd_width = abi::simd_width;
constexpr unsigned char poison = abi::poison;

inline void copy_bytes(void* to, const void* from, unsigned long size) {
  ::memcpy(to, from, size);
}
inline void fill_bytes(void* to, unsigned char value, unsigned long size) {
  ::memset(to, value, size);
}

// ---- 16-bit formats ----

#define MPSKIT_HARDWARE_HALF
inline float half_to_float(unsigned short bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}
inline unsigned short float_to_half(float value) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}

#define MPSKIT_HARDWARE_BFLOAT
inline float bfloat_to_float(unsigned short bits) {
  float value;
  asm("mov.b32 %0, {0, %1};" : "=f"(value) : "h"(bits));
  return value;
}
inline unsigned short float_to_bfloat(float value) {
  // The conversion of a single value runs on a unit that is a quarter as wide.
  unsigned bits;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(0.0f), "f"(value));
  return static_cast<unsigned short>(bits);
}

// ---- functions that libm lacks, or that the processor has as instructions ----

inline float exp10(float x) { return ::exp10f(x); }
inline float rsqrt(float x) { return ::__frsqrt_rn(x); }
inline float sinpi(float x) { return ::sinpif(x); }
inline float cospi(float x) { return ::cospif(x); }
inline float fmin(float x, float y) { return ::fminf(x, y); }
inline float fmax(float x, float y) { return ::fmaxf(x, y); }

namespace fast {

inline float exp2(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}
inline float exp(float x) { return exp2(x * 1.44269504f); }
inline float log(float x) { return ::__logf(x); }
inline float log2(float x) { return ::__log2f(x); }
inline float log10(float x) { return ::__log10f(x); }
inline float sin(float x) { return ::__sinf(x); }
inline float cos(float x) { return ::__cosf(x); }

} // namespace fast

// ---- bits; the argument of the last two is not 0 ----

constexpr int count_ones(unsigned long bits) {
  if (!__builtin_is_constant_evaluated()) return ::__popcll(static_cast<long long>(bits));
  int count = 0;
  for (; bits != 0; bits &= bits - 1) ++count;
  return count;
}
constexpr int leading_zeros(unsigned long bits) {
  if (!__builtin_is_constant_evaluated()) return ::__clzll(static_cast<long long>(bits));
  int count = 0;
  for (; !(bits >> 63); bits <<= 1) ++count;
  return count;
}
constexpr int trailing_zeros(unsigned long bits) {
  if (!__builtin_is_constant_evaluated()) return ::__ffsll(static_cast<long long>(bits)) - 1;
  int count = 0;
  for (; !(bits & 1); bits >>= 1) ++count;
  return count;
}

// ---- threads ----

// CUDA numbers a block's threads as Metal does a threadgroup's, so a warp's lanes are a simdgroup's.
inline unsigned lane() {
  unsigned lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}

// What a lane gave, and which lanes are active with it. The others' values are fetched when they
// are read, so all active lanes must read together, though each may read another lane.
template <class T>
struct Gathered {
  T value;
  unsigned active;
  unsigned lane;

  T operator[](unsigned source) const { return shuffled(value, source); }

  // After the step over a distance, lane i holds the combination of all lanes that are congruent
  // to i modulo that distance. Whichever of those is active can be asked for it, so that inactive
  // lanes leave the order of combination as it is.
  template <unsigned Width, class F>
  T butterfly(unsigned members, const T& identity, F combine) const {
    T result = value;
    if (Width == simd_width && members == ~0u) {
      for (unsigned distance = Width / 2; distance > 0; distance /= 2)
        result = combine(result, shuffled(result, lane ^ distance));
      return result;
    }
    for (unsigned distance = Width / 2; distance > 0; distance /= 2) {
      const unsigned period = 2 * distance;
      const unsigned congruent = (~0u / (~0u >> (simd_width - period))) << ((lane ^ distance) % period);
      const unsigned holders = members & congruent;
      const T other = shuffled(result, static_cast<unsigned>(::__ffs(holders | 1u << 31)) - 1);
      result = combine(result, holders != 0 ? other : identity);
    }
    return result;
  }

 private:
  T shuffled(const T& own, unsigned source) const {
    unsigned words[(sizeof(T) + 3) / 4] = {};
    ::memcpy(words, &own, sizeof(T));
    for (unsigned& word : words) word = ::__shfl_sync(active, word, source);
    T result;
    ::memcpy(&result, words, sizeof(T));
    return result;
  }
};

template <class T>
inline Gathered<T> gather(const T& value) {
  return {value, ::__activemask(), lane()};
}

struct Ballot {
  unsigned ayes;
  unsigned active;
  unsigned lane;
};

inline Ballot ballot(bool aye) {
  const unsigned active = ::__activemask();
  return {::__ballot_sync(active, aye), active, lane()};
}

// Those of the lanes that have not returned; the simdgroup's barrier is met by all of them.
inline void simdgroup_barrier(unsigned) { ::__syncwarp(); }
inline void threadgroup_barrier(unsigned) { ::__syncthreads(); }

// ---- atomics: CUDA's are relaxed, fences make the other order ----

template <unsigned long Size>
struct AtomicWord;
template <>
struct AtomicWord<4> {
  using type = unsigned;
};
template <>
struct AtomicWord<8> {
  using type = unsigned long long;
};
template <class Word>
using atomic_word = typename AtomicWord<sizeof(Word)>::type;

template <class Word>
inline atomic_word<Word>* atomic_address(volatile Word* at) {
  return reinterpret_cast<atomic_word<Word>*>(const_cast<Word*>(at));
}

inline void atomic_fence(bool relaxed) {
  if (!relaxed) ::__threadfence();
}

template <class Word, class F>
inline Word between_fences(bool relaxed, F operation) {
  atomic_fence(relaxed);
  const auto result = operation();
  atomic_fence(relaxed);
  return static_cast<Word>(result);
}

template <class Word>
inline Word atomic_load(const volatile Word* at, bool relaxed) {
  return between_fences<Word>(relaxed, [=] { return *at; });
}
template <class Word>
inline void atomic_store(volatile Word* at, Word value, bool relaxed) {
  atomic_fence(relaxed);
  *at = value;
  atomic_fence(relaxed);
}
template <class Word>
inline bool atomic_compare_exchange(volatile Word* at, Word* expected, Word desired, bool relaxed) {
  const Word before = between_fences<Word>(relaxed, [=] {
    return ::atomicCAS(
        atomic_address(at),
        static_cast<atomic_word<Word>>(*expected),
        static_cast<atomic_word<Word>>(desired));
  });
  const bool exchanged = before == *expected;
  *expected = before;
  return exchanged;
}

#define MPSKIT_FETCH(name, function, sign)                                                  \
  template <class Word>                                                                     \
  inline Word atomic_##name(volatile Word* at, Word value, bool relaxed) {                  \
    return between_fences<Word>(relaxed, [=] {                                              \
      return function(atomic_address(at), sign static_cast<atomic_word<Word>>(value));      \
    });                                                                                     \
  }
MPSKIT_FETCH(exchange_n, ::atomicExch, )
MPSKIT_FETCH(fetch_add, ::atomicAdd, )
MPSKIT_FETCH(fetch_sub, ::atomicAdd, -)
MPSKIT_FETCH(fetch_and, ::atomicAnd, )
MPSKIT_FETCH(fetch_or, ::atomicOr, )
MPSKIT_FETCH(fetch_xor, ::atomicXor, )
#undef MPSKIT_FETCH

} // namespace mpskit::target
