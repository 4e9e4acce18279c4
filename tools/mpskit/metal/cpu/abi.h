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

// A `threadgroup` variable of a kernel, the same for every thread of a threadgroup.
struct ThreadgroupVariable {
  unsigned site; // tells the declarations of a library apart
  const char* name;
  unsigned long bytes;
  unsigned alignment;
  unsigned element_bytes; // of an array's elements; of the variable when it is no array
  unsigned long extents[3]; // of an array, 0 where there are fewer dimensions
};

enum class AccessKind : unsigned { read, write, atomic_read, atomic_write };

constexpr bool is_write(AccessKind kind) {
  return kind == AccessKind::write || kind == AccessKind::atomic_write;
}
constexpr bool is_atomic(AccessKind kind) {
  return kind == AccessKind::atomic_read || kind == AccessKind::atomic_write;
}

struct Runtime {
  // The running thread's position, for the kernel's code to update.
  Position* (*position)();
  // Waits for the simdgroup's active lanes; `value` is at most lane_slot bytes.
  Lanes (*simd_gather)(const void* value, unsigned size);
  // Waits for the simdgroup's, then the threadgroup's, remaining threads. `flags`: mem_flags.
  void (*simdgroup_barrier)(unsigned flags);
  void (*threadgroup_barrier)(unsigned flags);
  void* (*threadgroup_memory)(const ThreadgroupVariable& variable);

  // Called by sanitized libraries only. `pc`: a return address in kernel code.
  void (*access)(const void* address, unsigned long bytes, AccessKind kind, const void* pc);
  void (*misaligned)(const void* address, unsigned alignment, const void* pc);
  // An index that an array has no element for; `type` is the array's, quoted.
  void (*outside_array)(const char* type, long index, const void* pc);
  void (*fence)();
  // A kernel's `return`, at a position in its text.
  void (*at_return)(unsigned position);
};

// What a marked position says of the operation there, in its lowest bits, in sanitized libraries.
enum class Operation : unsigned { other, quad, of_active_lanes };
constexpr unsigned operation_bits = 2;

enum class ParameterKind : unsigned { buffer, threadgroup, builtin };

// One buffer or threadgroup parameter, as the host must fill it.
struct Parameter {
  const char* name;
  ParameterKind kind;
  unsigned index; // of [[buffer(n)]] or [[threadgroup(n)]]
  Pointee pointee;
};

// Reads the Thread before anything else: the next thread's stands in its place.
using Entry = void (*)(const Thread&, void* const* buffers, void* const* threadgroup_buffers);

struct Kernel {
  const char* name; // the host name
  Entry entry;
  const Parameter* parameters;
  unsigned parameter_count;
  unsigned max_threads; // max_total_threads_per_threadgroup, or 1024
};

// An argument as the sanitizer must know it.
struct Buffer {
  void* address;
  unsigned long bytes;
  unsigned element_bytes;
  unsigned scalar_bytes; // the smallest unit that threads may share out among them
  bool writable;
  bool may_hold_addresses; // of other buffers
  const char* name;
};

struct Dispatch {
  const Kernel* kernel;
  void* const* buffers;
  const unsigned long* threadgroup_lengths; // bytes of each [[threadgroup(n)]]
  unsigned threadgroup_length_count;
  Uint3 threads;
  Uint3 group_size;
  unsigned workers; // OS threads to spread the threadgroups over
  double timeout; // seconds, 0 for none
  bool interruptible; // by SIGINT
  // One for each of `buffers`, then those that these point to; null where nothing is checked.
  const Buffer* sanitized;
  unsigned buffer_count;
};

// What a dispatch, called with Python's lock held, needs of Python.
struct Interpreter {
  int (*check_signals)(); // runs the handlers of signals that came; not 0 where one raised
  void* (*release_lock)();
  void (*take_lock)(void* released);
};

// ---- what came of a dispatch ----

enum class Failure : unsigned { none, refused, fault, timeout, interrupted };

enum class Check : unsigned {
  out_of_bounds,
  race_in_threadgroup,
  race_across_threadgroups,
  unwritten_threadgroup_memory,
  barrier_divergence,
  simd_divergence,
  read_only_write,
  misaligned_access,
};

enum class Space : unsigned { device, constant, threadgroup };

struct Access {
  const void* pc;
  Uint3 thread; // position in its threadgroup
  Uint3 threadgroup;
  AccessKind kind;
  unsigned bytes;
};

// Threads that are elsewhere while others meet.
struct Absent {
  enum class Place : unsigned { returned, ran_to_end, at_barrier, at_simd_operation };

  Place place;
  const void* pc; // where; null for those that ran to the end
  unsigned first, last; // indices in the threadgroup
  unsigned count;
};

constexpr unsigned max_absent = 4;

struct Report {
  Check check;
  Access access;
  Access other; // of a race: the access that came first
  bool same_value; // both wrote the same
  const char* variable; // a buffer or `threadgroup` variable; null where no memory is concerned
  const char* array_type; // of a local variable or a table, for an index outside it
  Space space;
  long index; // of the element, as the parameter or the variable has them
  unsigned long elements; // that the variable has
  unsigned alignment; // that a misaligned access needs
  unsigned active; // threads that met,
  unsigned expected; // and that should have
  bool simdgroup; // they are lanes of a simdgroup
  bool in_one_call; // the others are inside the same call of the kernel's
  Absent absent[max_absent];
  unsigned absent_count;
};

constexpr unsigned long message_bytes = 1024;

struct Outcome {
  Failure failure;
  char message[message_bytes];
  const void* pc; // of a fault
  const void* image; // where the kernel library is loaded
  const Report* reports; // until this OS thread's next dispatch
  unsigned report_count;
  bool capped; // there was more to report
};

} // namespace mpskit::abi
