// What the generated part of a kernel library is written in: arguments converted to what a kernel's
// signature asks for, `threadgroup` variables placed. Included behind the shim.
#pragma once

#include "abi.h"
#include "entry.h"

namespace mpskit::cpu {

using abi::ParameterKind;
using abi::Thread;
namespace builtins = entry::builtins;

template <class T>
struct ArrayElement {
  using type = T;
};
template <class T, unsigned long N>
struct ArrayElement<T[N]> : ArrayElement<T> {};

template <unsigned Dimension, class T>
constexpr unsigned long extent = 0;
template <class T, unsigned long N>
constexpr unsigned long extent<0, T[N]> = N;
template <unsigned Dimension, class T, unsigned long N>
  requires(Dimension > 0)
constexpr unsigned long extent<Dimension, T[N]> = extent<Dimension - 1, T>;

// A `threadgroup` variable's place, as whatever type the declaration asks for. Its constructor
// does not run, as in Metal: the memory starts undefined.
struct ThreadgroupVariable {
  unsigned site;
  const char* name;

  template <class T>
  operator T&() const {
    const abi::ThreadgroupVariable variable{
        site,
        name,
        sizeof(T),
        alignof(T),
        sizeof(typename ArrayElement<T>::type),
        {extent<0, T>, extent<1, T>, extent<2, T>}};
    return *static_cast<T*>(target::runtime->threadgroup_memory(variable));
  }
};

// Stand in front of calls that come to a simdgroup operation or barrier.
inline void at_kernel(unsigned position) {
  *target::runtime->position() = {position, 0};
}
inline void at(unsigned position) {
  target::runtime->position()->function = position;
}

// Stands in a kernel's `return`, where accesses are checked.
inline void at_return(unsigned position) {
  target::runtime->at_return(position);
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
