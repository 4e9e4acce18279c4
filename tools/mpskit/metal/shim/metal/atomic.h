// atomic<T> and the atomic_*_explicit functions. Orders other than relaxed are taken as
// sequentially consistent, which is stronger than what was asked for.
#pragma once

#include "synchronization.h"

namespace mpskit::atomics {

// The word of memory behind an atomic<T>; Metal's atomic_bool has four bytes.
template <class T>
using word_t = core::choose_t<core::one_of<T, bool, float>, uint, T>;

template <class T>
constexpr word_t<T> to_word(T value) {
  if constexpr (core::same<T, float>)
    return __builtin_bit_cast(uint, value);
  else
    return static_cast<word_t<T>>(value);
}
template <class T>
constexpr T from_word(word_t<T> bits) {
  if constexpr (core::same<T, float>)
    return __builtin_bit_cast(float, bits);
  else
    return static_cast<T>(bits);
}

template <class T>
concept allowed = core::one_of<T, int, uint, bool, float, long, ulong>;
template <class T>
concept additive = core::one_of<T, int, uint, float, long, ulong>;
template <class T>
concept bitwise = core::one_of<T, int, uint, long, ulong>;

} // namespace mpskit::atomics

namespace metal {

template <class T>
struct atomic {
  static_assert(mpskit::atomics::allowed<T>, "MSL has no atomic of this type");
  mpskit::atomics::word_t<T> word;
};
using atomic_int = atomic<int>;
using atomic_uint = atomic<uint>;
using atomic_bool = atomic<bool>;
using atomic_float = atomic<float>;
using atomic_long = atomic<long>;
using atomic_ulong = atomic<ulong>;

template <class T>
inline T atomic_load_explicit(const volatile atomic<T>* object, memory_order order) {
  return mpskit::atomics::from_word<T>(
      mpskit::target::atomic_load(&object->word, order == memory_order_relaxed));
}

template <class T>
inline void atomic_store_explicit(
    volatile atomic<T>* object,
    mpskit::core::identity_t<T> desired,
    memory_order order) {
  mpskit::target::atomic_store(
      &object->word, mpskit::atomics::to_word<T>(desired), order == memory_order_relaxed);
}

template <class T>
inline T atomic_exchange_explicit(
    volatile atomic<T>* object,
    mpskit::core::identity_t<T> desired,
    memory_order order) {
  return mpskit::atomics::from_word<T>(mpskit::target::atomic_exchange_n(
      &object->word, mpskit::atomics::to_word<T>(desired), order == memory_order_relaxed));
}

template <class T>
inline bool atomic_compare_exchange_weak_explicit(
    volatile atomic<T>* object,
    mpskit::core::identity_t<T>* expected,
    mpskit::core::identity_t<T> desired,
    memory_order success,
    memory_order failure) {
  const bool relaxed = success == memory_order_relaxed && failure == memory_order_relaxed;
  auto seen = mpskit::atomics::to_word<T>(*expected);
  const bool exchanged = mpskit::target::atomic_compare_exchange(
      &object->word, &seen, mpskit::atomics::to_word<T>(desired), relaxed);
  if (!exchanged) *expected = mpskit::atomics::from_word<T>(seen);
  return exchanged;
}

} // namespace metal

namespace mpskit::atomics {

// Replaces the value by update(value) and gives the one that was replaced.
template <class T, class F>
inline T fetch_update(volatile metal::atomic<T>* object, metal::memory_order order, F update) {
  T seen = metal::atomic_load_explicit(object, metal::memory_order_relaxed);
  while (!metal::atomic_compare_exchange_weak_explicit(
      object, &seen, static_cast<T>(update(seen)), order, metal::memory_order_relaxed)) {
  }
  return seen;
}

} // namespace mpskit::atomics

namespace metal {

#define MPSKIT_FETCH(name, op)                                                                \
  template <class T>                                                                          \
    requires mpskit::atomics::additive<T>                                                     \
  inline T name##_explicit(                                                                   \
      volatile atomic<T>* object, mpskit::core::identity_t<T> operand, memory_order order) {  \
    if constexpr (mpskit::core::same<T, float>)                                               \
      return mpskit::atomics::fetch_update(                                                   \
          object, order, [operand](float value) { return value op operand; });                \
    else                                                                                      \
      return mpskit::target::name(&object->word, operand, order == memory_order_relaxed);     \
  }
MPSKIT_FETCH(atomic_fetch_add, +)
MPSKIT_FETCH(atomic_fetch_sub, -)
#undef MPSKIT_FETCH

#define MPSKIT_FETCH(name)                                                                    \
  template <class T>                                                                          \
    requires mpskit::atomics::bitwise<T>                                                      \
  inline T name##_explicit(                                                                   \
      volatile atomic<T>* object, mpskit::core::identity_t<T> operand, memory_order order) {  \
    return mpskit::target::name(&object->word, operand, order == memory_order_relaxed);       \
  }
MPSKIT_FETCH(atomic_fetch_and)
MPSKIT_FETCH(atomic_fetch_or)
MPSKIT_FETCH(atomic_fetch_xor)
#undef MPSKIT_FETCH

#define MPSKIT_FETCH(name, op)                                                                \
  template <class T>                                                                          \
    requires mpskit::atomics::bitwise<T>                                                      \
  inline T atomic_fetch_##name##_explicit(                                                    \
      volatile atomic<T>* object, mpskit::core::identity_t<T> operand, memory_order order) {  \
    return mpskit::atomics::fetch_update(                                                     \
        object, order, [operand](T value) { return operand op value ? operand : value; });    \
  }                                                                                           \
  inline void atomic_##name##_explicit(                                                       \
      volatile atomic<ulong>* object, ulong operand, memory_order order) {                    \
    atomic_fetch_##name##_explicit(object, operand, order);                                   \
  }
MPSKIT_FETCH(min, <)
MPSKIT_FETCH(max, >)
#undef MPSKIT_FETCH

} // namespace metal
