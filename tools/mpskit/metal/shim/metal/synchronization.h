// Barriers and the enumerations that they and the atomics share.
#pragma once

namespace metal {

// Bits, as the runtime receives them.
enum class mem_flags : uint {
  mem_none = 0,
  mem_device = 1,
  mem_threadgroup = 2,
  mem_texture = 4,
  mem_threadgroup_imageblock = 8,
  mem_object_data = 16
};

constexpr mem_flags operator|(mem_flags a, mem_flags b) {
  return static_cast<mem_flags>(static_cast<uint>(a) | static_cast<uint>(b));
}
constexpr mem_flags operator&(mem_flags a, mem_flags b) {
  return static_cast<mem_flags>(static_cast<uint>(a) & static_cast<uint>(b));
}

enum memory_order {
  memory_order_relaxed,
  memory_order_acquire,
  memory_order_release,
  memory_order_acq_rel,
  memory_order_seq_cst
};

enum class thread_scope : uint {
  thread_scope_thread,
  thread_scope_simdgroup,
  thread_scope_threadgroup,
  thread_scope_device
};
inline constexpr thread_scope thread_scope_thread = thread_scope::thread_scope_thread;
inline constexpr thread_scope thread_scope_simdgroup = thread_scope::thread_scope_simdgroup;
inline constexpr thread_scope thread_scope_threadgroup = thread_scope::thread_scope_threadgroup;
inline constexpr thread_scope thread_scope_device = thread_scope::thread_scope_device;

inline void threadgroup_barrier(mem_flags flags) {
  mpskit::target::threadgroup_barrier(static_cast<uint>(flags));
}
inline void simdgroup_barrier(mem_flags flags) {
  mpskit::target::simdgroup_barrier(static_cast<uint>(flags));
}

inline void atomic_thread_fence(
    mem_flags,
    memory_order order,
    thread_scope = thread_scope::thread_scope_device) {
  mpskit::target::atomic_fence(order == memory_order_relaxed);
}

} // namespace metal
