// What a compiler's thread, alignment and bounds sanitizers call, for a kernel library: defined here in the
// place of their own runtimes, and passed on to ours. Included behind kernel_support.h.
//
// The names and signatures are those of compiler-rt's tsan_interface.h, tsan_interface_atomic.h and
// ubsan_handlers.h.
#pragma once

#include "abi.h"

// For clang, no_sanitize("thread") leaves the calls for atomics in.
#if defined(__clang__)
#define MPSKIT_UNWATCHED disable_sanitizer_instrumentation
#else
#define MPSKIT_UNWATCHED no_sanitize("thread")
#endif
#define MPSKIT_HOOK          \
  extern "C" __attribute__(( \
      visibility("hidden"), noinline, used, MPSKIT_UNWATCHED, no_sanitize("alignment")))

namespace mpskit::hooks {

using abi::AccessKind;

struct SourceLocation {
  const char* file;
  unsigned line, column;
};

struct Type {
  unsigned short kind;
  unsigned short information; // of an integer: the logarithm of its bits, and whether it has a sign
  char name[];
};

struct OutOfBounds {
  SourceLocation location;
  const Type* array;
  const Type* index;
};

struct TypeMismatch {
  SourceLocation location;
  const void* type;
  unsigned char log_alignment;
  unsigned char check_kind;
};

} // namespace mpskit::hooks

#define MPSKIT_ACCESS(address, bytes, kind)                             \
  ::mpskit::target::runtime->access(                                    \
      (const void*)(address), bytes, ::mpskit::hooks::AccessKind::kind, \
      __builtin_return_address(0))

// Of an access that the compiler takes for aligned.
#define MPSKIT_ALIGNED(address, bytes)                  \
  if (reinterpret_cast<unsigned long>(address) % bytes) \
  ::mpskit::target::runtime->misaligned(address, bytes, __builtin_return_address(0))

// ---- plain accesses ----

#define MPSKIT_HOOKS(bytes)                                            \
  MPSKIT_HOOK void __tsan_read##bytes(void* address) {                 \
    MPSKIT_ALIGNED(address, bytes);                                    \
    MPSKIT_ACCESS(address, bytes, read);                               \
  }                                                                    \
  MPSKIT_HOOK void __tsan_write##bytes(void* address) {                \
    MPSKIT_ALIGNED(address, bytes);                                    \
    MPSKIT_ACCESS(address, bytes, write);                              \
  }                                                                    \
  MPSKIT_HOOK void __tsan_unaligned_read##bytes(void* address) {       \
    MPSKIT_ACCESS(address, bytes, read);                               \
  }                                                                    \
  MPSKIT_HOOK void __tsan_unaligned_write##bytes(void* address) {      \
    MPSKIT_ACCESS(address, bytes, write);                              \
  }                                                                    \
  MPSKIT_HOOK void __tsan_read_write##bytes(void* address) {           \
    MPSKIT_ACCESS(address, bytes, read);                               \
    MPSKIT_ACCESS(address, bytes, write);                              \
  }                                                                    \
  MPSKIT_HOOK void __tsan_unaligned_read_write##bytes(void* address) { \
    MPSKIT_ACCESS(address, bytes, read);                               \
    MPSKIT_ACCESS(address, bytes, write);                              \
  }
MPSKIT_HOOKS(1)
MPSKIT_HOOKS(2)
MPSKIT_HOOKS(4)
MPSKIT_HOOKS(8)
MPSKIT_HOOKS(16)
#undef MPSKIT_HOOKS

MPSKIT_HOOK void __tsan_read_range(void* address, unsigned long bytes) {
  MPSKIT_ACCESS(address, bytes, read);
}
MPSKIT_HOOK void __tsan_write_range(void* address, unsigned long bytes) {
  MPSKIT_ACCESS(address, bytes, write);
}
MPSKIT_HOOK void* __tsan_memcpy(void* to, const void* from, unsigned long bytes) {
  MPSKIT_ACCESS(from, bytes, read);
  MPSKIT_ACCESS(to, bytes, write);
  return __builtin_memcpy(to, from, bytes);
}
MPSKIT_HOOK void* __tsan_memmove(void* to, const void* from, unsigned long bytes) {
  MPSKIT_ACCESS(from, bytes, read);
  MPSKIT_ACCESS(to, bytes, write);
  return __builtin_memmove(to, from, bytes);
}
MPSKIT_HOOK void* __tsan_memset(void* to, int value, unsigned long bytes) {
  MPSKIT_ACCESS(to, bytes, write);
  return __builtin_memset(to, value, bytes);
}

MPSKIT_HOOK void __tsan_init() {}
MPSKIT_HOOK void __tsan_func_entry(void*) {}
MPSKIT_HOOK void __tsan_func_exit() {}
MPSKIT_HOOK void __tsan_vptr_update(void**, void*) {}
MPSKIT_HOOK void __tsan_vptr_read(void**) {}

// ---- atomics; an order is an int, and the strongest one serves for all ----

#define MPSKIT_HOOKS(bits, Word)                                                        \
  MPSKIT_HOOK Word __tsan_atomic##bits##_load(const volatile Word* at, int) {           \
    MPSKIT_ACCESS(at, sizeof(Word), atomic_read);                                       \
    return __atomic_load_n(at, __ATOMIC_SEQ_CST);                                       \
  }                                                                                     \
  MPSKIT_HOOK void __tsan_atomic##bits##_store(volatile Word* at, Word value, int) {    \
    MPSKIT_ACCESS(at, sizeof(Word), atomic_write);                                      \
    __atomic_store_n(at, value, __ATOMIC_SEQ_CST);                                      \
  }                                                                                     \
  MPSKIT_HOOK Word __tsan_atomic##bits##_exchange(volatile Word* at, Word value, int) { \
    MPSKIT_ACCESS(at, sizeof(Word), atomic_read);                                       \
    MPSKIT_ACCESS(at, sizeof(Word), atomic_write);                                      \
    return __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST);                            \
  }                                                                                     \
  MPSKIT_HOOK bool __tsan_atomic##bits##_compare_exchange_strong(                       \
      volatile Word* at, Word* expected, Word desired, int, int) {                      \
    MPSKIT_ACCESS(at, sizeof(Word), atomic_read);                                       \
    MPSKIT_ACCESS(at, sizeof(Word), atomic_write);                                      \
    return __atomic_compare_exchange_n(                                                 \
        at, expected, desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);              \
  }                                                                                     \
  MPSKIT_HOOK bool __tsan_atomic##bits##_compare_exchange_weak(                         \
      volatile Word* at, Word* expected, Word desired, int, int) {                      \
    MPSKIT_ACCESS(at, sizeof(Word), atomic_read);                                       \
    MPSKIT_ACCESS(at, sizeof(Word), atomic_write);                                      \
    return __atomic_compare_exchange_n(                                                 \
        at, expected, desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);              \
  }                                                                                     \
  MPSKIT_HOOK Word __tsan_atomic##bits##_compare_exchange_val(                          \
      volatile Word* at, Word expected, Word desired, int, int) {                       \
    MPSKIT_ACCESS(at, sizeof(Word), atomic_read);                                       \
    MPSKIT_ACCESS(at, sizeof(Word), atomic_write);                                      \
    __atomic_compare_exchange_n(                                                        \
        at, &expected, desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);             \
    return expected;                                                                    \
  }                                                                                     \
  MPSKIT_FETCH_HOOK(bits, Word, add)                                                    \
  MPSKIT_FETCH_HOOK(bits, Word, sub)                                                    \
  MPSKIT_FETCH_HOOK(bits, Word, and)                                                    \
  MPSKIT_FETCH_HOOK(bits, Word, or)                                                     \
  MPSKIT_FETCH_HOOK(bits, Word, xor)
#define MPSKIT_FETCH_HOOK(bits, Word, name)                                                 \
  MPSKIT_HOOK Word __tsan_atomic##bits##_fetch_##name(volatile Word* at, Word value, int) { \
    MPSKIT_ACCESS(at, sizeof(Word), atomic_read);                                           \
    MPSKIT_ACCESS(at, sizeof(Word), atomic_write);                                          \
    return __atomic_fetch_##name(at, value, __ATOMIC_SEQ_CST);                              \
  }
MPSKIT_HOOKS(32, unsigned)
MPSKIT_HOOKS(64, unsigned long)
#undef MPSKIT_FETCH_HOOK
#undef MPSKIT_HOOKS
#undef MPSKIT_ACCESS
#undef MPSKIT_ALIGNED

MPSKIT_HOOK void __tsan_atomic_thread_fence(int) {
  ::mpskit::target::runtime->fence();
}
MPSKIT_HOOK void __tsan_atomic_signal_fence(int) {}

// ---- alignment ----

MPSKIT_HOOK void __ubsan_handle_type_mismatch_v1(
    const ::mpskit::hooks::TypeMismatch* mismatch, void* address) {
  ::mpskit::target::runtime->misaligned(
      address, 1u << mismatch->log_alignment, __builtin_return_address(0));
}

// ---- indices ----

MPSKIT_HOOK void __ubsan_handle_out_of_bounds(
    const ::mpskit::hooks::OutOfBounds* found, unsigned long index) {
  const unsigned bits = 1u << (found->index->information >> 1);
  const bool is_signed = found->index->information & 1;
  const long value = bits == 32 && is_signed ? static_cast<int>(index) : static_cast<long>(index);
  ::mpskit::target::runtime->outside_array(
      found->array->name, value, __builtin_return_address(0));
}

#undef MPSKIT_HOOK
#undef MPSKIT_UNWATCHED
