// The contract between a compiled kernel library and the runtime that launches it.
// Both sides include this file and nothing else of each other's. No standard header: the kernel
// side is compiled without any, so that no host name can hide or shadow a Metal one.
#pragma once

#include "thread.h"

namespace mpskit::abi {

// Bytes a lane can give to a simdgroup operation; the largest operand is a 4-vector of 64-bit.
constexpr unsigned lane_slot = 32;

// What the lanes that took part in one simdgroup operation gave.
struct Lanes {
  const void* values; // simd_width of them, packed, as in an array; poison where inactive
  unsigned active; // bit i is set when lane i took part
  unsigned lane; // the caller's own index
  // Where the lane that resumes first may leave, for the others, what all of them would compute
  // alike: lane_slot bytes, and whether it has.
  void* shared;
  bool* has_shared;
};

// Where in the program a thread is about to meet its simdgroup: a position in a kernel's text,
// and one in the text of the function that the kernel called, or 0.
struct Position {
  unsigned kernel, function;
};

struct Runtime {
  // The running thread's position, for the kernel's code to update.
  Position* (*position)();
  // Waits for the simdgroup's active lanes; `value` is at most lane_slot bytes.
  Lanes (*simd_gather)(const void* value, unsigned size);
  // Waits for the simdgroup's, then the threadgroup's, remaining threads. `flags`: mem_flags.
  void (*simdgroup_barrier)(unsigned flags);
  void (*threadgroup_barrier)(unsigned flags);
  // The place of one `threadgroup` variable, the same for every thread of a threadgroup. `site`
  // tells the declarations of a library apart.
  void* (*threadgroup_memory)(unsigned site, unsigned long bytes, unsigned long alignment);
};

enum class ParameterKind : unsigned { buffer, threadgroup, builtin };

// One buffer or threadgroup parameter, as the host must fill it.
struct Parameter {
  const char* name;
  ParameterKind kind;
  unsigned index; // of [[buffer(n)]] or [[threadgroup(n)]]
  Pointee pointee;
};

using Entry = void (*)(const Thread&, void* const* buffers, void* const* threadgroup_buffers);

struct Kernel {
  const char* name; // the host name
  Entry entry;
  const Parameter* parameters;
  unsigned parameter_count;
  unsigned max_threads; // max_total_threads_per_threadgroup, or 1024
};

struct Dispatch {
  const Kernel* kernel;
  void* const* buffers;
  const unsigned long* threadgroup_lengths; // bytes of each [[threadgroup(n)]]
  unsigned threadgroup_length_count;
  Uint3 threads;
  Uint3 group_size;
  unsigned workers; // OS threads to spread the threadgroups over, 0 for one a core
};

} // namespace mpskit::abi
