// What the cuda backend's entry points are written in. Included behind the shim and entry.h.
#pragma once

namespace mpskit::cuda {

using abi::Thread;
using abi::Uint3;
namespace builtins = entry::builtins;

// The first argument of every entry point. A grid has one dimension: CUDA's limit of 65535 blocks in
// y and z is not Metal's. A block has two, (x, y * z): its limit of 64 threads in z is not either.
struct Dispatch {
  Uint3 threads;
  Uint3 group_size;
  Uint3 groups;
};

// The place that comes `index`-th, x running fastest. Divides, which takes a GPU long, only where it
// must.
inline Uint3 place(unsigned index, Uint3 size) {
  if (size.y * size.z == 1) return {index, 0, 0};
  const unsigned row = size.x == 1 ? index : index / size.x;
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

// Where a thread is in a threadgroup of `size`, of which `full` is what the block was launched with.
// A threadgroup at a ragged edge of the grid is formed by the first threads of its block, so that
// its simdgroups are full up to the last. The block's other threads have an index beyond its size.
inline Uint3 place_in_group(unsigned index, Uint3 size, Uint3 full) {
  const bool is_ragged = size.x < full.x || (full.z != 1 && size.y < full.y);
  if (is_ragged) return place(index, size);
  const unsigned z = full.z == 1 ? 0 : ::threadIdx.y / full.y;
  return {::threadIdx.x, ::threadIdx.y - z * full.y, z};
}

inline Thread this_thread(const Dispatch& dispatch) {
  const Uint3 full = dispatch.group_size;
  const Uint3 group = place(::blockIdx.x, dispatch.groups);
  const Uint3 size = {
      extent_at(group.x, full.x, dispatch.threads.x),
      extent_at(group.y, full.y, dispatch.threads.y),
      extent_at(group.z, full.z, dispatch.threads.z)};
  const unsigned index = ::threadIdx.y * full.x + ::threadIdx.x;
  const Uint3 at = place_in_group(index, size, full);
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

inline bool exists(const Thread& thread) {
  return thread.thread_index_in_threadgroup < product(thread.threads_per_threadgroup);
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
