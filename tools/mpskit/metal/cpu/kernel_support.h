// What the generated part of a kernel library is written in: arguments converted to what a kernel's
// signature asks for, `threadgroup` variables placed. Included behind the shim.
#pragma once

#include "abi.h"
#include "entry.h"

namespace mpskit::cpu {

using abi::ParameterKind;
using abi::Thread;
namespace builtins = entry::builtins;

// A `threadgroup` variable's place, as whatever type the declaration asks for. Its constructor
// does not run, as in Metal: the memory starts undefined.
struct ThreadgroupVariable {
  unsigned site;

  template <class T>
  operator T&() const {
    return *static_cast<T*>(target::runtime->threadgroup_memory(site, sizeof(T), alignof(T)));
  }
};

// Stand in front of calls that come to a simdgroup operation or barrier.
inline void at_kernel(unsigned position) {
  *target::runtime->position() = {position, 0};
}
inline void at(unsigned position) {
  target::runtime->position()->function = position;
}

struct Pointer {
  void* address;

  template <class T>
  operator T*() const {
    return static_cast<T*>(address);
  }
};

struct Reference {
  void* address;

  template <class T>
  operator T&() const {
    return *static_cast<T*>(address);
  }
};

} // namespace mpskit::cpu
