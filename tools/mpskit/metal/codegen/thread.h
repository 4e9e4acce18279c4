// What a compiled kernel is told about its thread, and tells about its parameters. Runtimes include
// this file too, so it needs no other header.
#pragma once

namespace mpskit::abi {

constexpr unsigned simd_width = 32;

// What fills memory whose value Metal leaves undefined: NaN in every floating type, -1 in integers.
constexpr unsigned char poison = 0xFF;

struct Uint3 {
  unsigned x, y, z;
};

constexpr unsigned product(Uint3 size) {
  return size.x * size.y * size.z;
}

// Where one thread of a dispatch stands. Names are those of MSL's kernel attributes.
struct Thread {
  Uint3 thread_position_in_grid;
  Uint3 thread_position_in_threadgroup;
  Uint3 threadgroup_position_in_grid;
  Uint3 threads_per_grid;
  Uint3 threadgroups_per_grid;
  Uint3 threads_per_threadgroup; // of this threadgroup: smaller at a ragged edge of the grid
  Uint3 dispatch_threads_per_threadgroup; // as dispatched
  unsigned thread_index_in_threadgroup;
  unsigned thread_index_in_simdgroup;
  unsigned simdgroup_index_in_threadgroup;
  unsigned simdgroups_per_threadgroup;
  unsigned dispatch_simdgroups_per_threadgroup;
};

enum class ScalarKind : unsigned { other, boolean, signed_integer, unsigned_integer, floating };

// What a buffer or threadgroup parameter points to, as the host must know it.
struct Pointee {
  unsigned size; // bytes, 0 for void
  unsigned alignment;
  ScalarKind scalar; // of the pointee, or of its elements when it is a vector
  bool reference; // T& holds one T, T* any number
  bool constant; // the kernel may not write through it
};

} // namespace mpskit::abi
