// One thread of the threadgroup that runs, and where it waits.
#pragma once

#include "abi.h"

#include <tuple>

namespace {

using namespace mpskit::abi;

enum class State : unsigned char { unstarted, running, at_simd_operation, at_simd_barrier,
                                   at_barrier, finished };

inline bool same(Position a, Position b) {
  return a.kernel == b.kernel && a.function == b.function;
}
inline bool precedes(Position a, Position b) {
  return std::tie(a.kernel, a.function) < std::tie(b.kernel, b.function);
}

// An operation, ordered as in the program: functions called from several places, and places that
// are no call of their own, are told apart by the address of the machine code.
struct Site {
  Position position;
  const void* address;

  auto order() const {
    return std::tuple(position.kernel, position.function, address);
  }
  bool operator==(const Site& other) const {
    return order() == other.order();
  }
  bool operator<(const Site& other) const {
    return order() < other.order();
  }
};

// One thread of the threadgroup that runs.
struct Fiber {
  void* stack_pointer;
  Site site; // of the operation it waits at
  const void* operand; // on the fiber's stack
  unsigned operand_size;
  unsigned barrier_flags;
  State state;
  Position returned; // of the `return` that ended it, where a sanitized kernel had one
  const void* returned_pc;
};

} // namespace
