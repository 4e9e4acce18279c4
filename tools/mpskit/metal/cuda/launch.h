// What the cuda backend's entry points are written in. Included behind the shim and entry.h.
#pragma once

namespace mpskit::cuda {

using abi::Thread;
using abi::Uint3;
namespace builtins = entry::builtins;

// The first argument of every entry point. A launch that `is_native` has CUDA's own three dimensions
// and no ragged edge. Any other has one dimension: CUDA's limits of 65535 blocks in y and z, and of 64
// threads in z, are not Metal's.
struct Dispatch {
  Uint3 threads;
  Uint3 group_size;
  Uint3 groups;
  unsigned is_native;
};

// The place that comes `index`-th, x running fastest.
inline Uint3 place(unsigned index, Uint3 size) {
  if (size.y * size.z == 1) return {index, 0, 0};
  const unsigned row = index / size.x;
  const unsigned z = size.z == 1 ? 0 : row / size.y;
  return {index - row * size.x, row - z * size.y, z};
}

inline unsigned extent_at(unsigned group, unsigned group_size, unsigned threads) {
  const unsigned left = threads - group * group_size;
  return left < group_size ? left : group_size;
}

constexpr unsigned simdgroups(unsigned threads) {
  return (threads + abi::simd_width - 1) / abi::simd_width;
}

// The thread at a place in a threadgroup, `index`-th of the threadgroup's `size`.
inline Thread thread_at(const Dispatch& dispatch, Uint3 group, Uint3 size, Uint3 at, unsigned index) {
  const Uint3 full = dispatch.group_size;
  return {
      {group.x * full.x + at.x, group.y * full.y + at.y, group.z * full.z + at.z},
      at,
      group,
      dispatch.threads,
      dispatch.groups,
      size,
      full,
      index,
      index % abi::simd_width,
      index / abi::simd_width,
      simdgroups(product(size)),
      simdgroups(product(full))};
}

inline Thread native_thread(const Dispatch& dispatch) {
  const Uint3 size = dispatch.group_size;
  const Uint3 group = {::blockIdx.x, ::blockIdx.y, ::blockIdx.z};
  const Uint3 at = {::threadIdx.x, ::threadIdx.y, ::threadIdx.z};
  return thread_at(dispatch, group, size, at, (at.z * size.y + at.y) * size.x + at.x);
}

// A threadgroup at a ragged edge of the grid is formed by the first threads of its block, so that
// its simdgroups are full up to the last. The block's other threads have an index beyond its size.
inline Thread flat_thread(const Dispatch& dispatch) {
  const Uint3 full = dispatch.group_size;
  const Uint3 group = place(::blockIdx.x, dispatch.groups);
  const Uint3 size = {
      extent_at(group.x, full.x, dispatch.threads.x),
      extent_at(group.y, full.y, dispatch.threads.y),
      extent_at(group.z, full.z, dispatch.threads.z)};
  return thread_at(dispatch, group, size, place(::threadIdx.x, size), ::threadIdx.x);
}

inline Thread this_thread(const Dispatch& dispatch) {
  return __builtin_expect(dispatch.is_native, 1) ? native_thread(dispatch) : flat_thread(dispatch);
}

inline bool exists(const Dispatch& dispatch, const Thread& thread) {
  return dispatch.is_native ||
      thread.thread_index_in_threadgroup < product(thread.threads_per_threadgroup);
}

// What a `constant T&` refers to, as an argument: the T itself, by its bytes since a T may have
// constructors of its own, or the address of one that is large.
template <class T>
struct Constant {
  alignas(T) unsigned char bytes[sizeof(T)];

  const T& get() const { return *reinterpret_cast<const T*>(bytes); }
};
template <class T>
  requires(sizeof(T) > MPSKIT_BY_VALUE_LIMIT)
struct Constant<T> {
  const T* address;

  const T& get() const { return *address; }
};
template <unsigned I, class Function>
using ConstantOf = Constant<::metal::remove_cv_t<entry::PointeeOf<I, Function>>>;

extern __shared__ __align__(16) unsigned char threadgroup_memory[];

// The place of a [[threadgroup(n)]] argument.
template <unsigned I, class Function>
inline auto threadgroup_buffer(unsigned offset) {
  return reinterpret_cast<entry::PointeeOf<I, Function>*>(threadgroup_memory + offset);
}

} // namespace mpskit::cuda
