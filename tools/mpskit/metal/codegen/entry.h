// What generated entry points are written in on every backend: positions converted to what a kernel's
// signature asks for, parameters described for the host. Included behind the shim.
#pragma once

#include "thread.h"

namespace mpskit::entry {

using abi::ScalarKind;
using abi::Thread;

// A position or size: a kernel takes it as a scalar or as a vector of two or three.
struct Position {
  abi::Uint3 value;

  template <class T>
    requires(::metal::is_integral_v<T>)
  operator T() const {
    return static_cast<T>(value.x);
  }
  template <class T>
  operator ::metal::vec<T, 2>() const {
    return ::metal::vec<T, 2>(static_cast<T>(value.x), static_cast<T>(value.y));
  }
  template <class T>
  operator ::metal::vec<T, 3>() const {
    return ::metal::vec<T, 3>(
        static_cast<T>(value.x), static_cast<T>(value.y), static_cast<T>(value.z));
  }
};

// One function for each kernel attribute, under the attribute's name.
namespace builtins {

constexpr unsigned quad_width = 4;

constexpr Position scalar(unsigned value) {
  return {{value, 1, 1}};
}
constexpr unsigned quads(unsigned threads) {
  return (threads + quad_width - 1) / quad_width;
}

// A buffer that a function constant leaves out.
struct Absent {
  template <class T>
  operator T*() const {
    return nullptr;
  }
  template <class T>
  operator T&() const {
    return *static_cast<T*>(nullptr);
  }
};

inline Absent absent(const Thread&) {
  return {};
}

inline Position thread_position_in_grid(const Thread& t) {
  return {t.thread_position_in_grid};
}
inline Position thread_position_in_threadgroup(const Thread& t) {
  return {t.thread_position_in_threadgroup};
}
inline Position threadgroup_position_in_grid(const Thread& t) {
  return {t.threadgroup_position_in_grid};
}
inline Position threads_per_grid(const Thread& t) {
  return {t.threads_per_grid};
}
inline Position threadgroups_per_grid(const Thread& t) {
  return {t.threadgroups_per_grid};
}
inline Position threads_per_threadgroup(const Thread& t) {
  return {t.threads_per_threadgroup};
}
inline Position dispatch_threads_per_threadgroup(const Thread& t) {
  return {t.dispatch_threads_per_threadgroup};
}
inline Position grid_origin(const Thread&) {
  return {{0, 0, 0}};
}
inline Position grid_size(const Thread& t) {
  return {t.threads_per_grid};
}
inline Position thread_index_in_threadgroup(const Thread& t) {
  return scalar(t.thread_index_in_threadgroup);
}
inline Position thread_index_in_simdgroup(const Thread& t) {
  return scalar(t.thread_index_in_simdgroup);
}
inline Position thread_index_in_quadgroup(const Thread& t) {
  return scalar(t.thread_index_in_simdgroup % quad_width);
}
inline Position simdgroup_index_in_threadgroup(const Thread& t) {
  return scalar(t.simdgroup_index_in_threadgroup);
}
inline Position quadgroup_index_in_threadgroup(const Thread& t) {
  return scalar(t.thread_index_in_threadgroup / quad_width);
}
inline Position simdgroups_per_threadgroup(const Thread& t) {
  return scalar(t.simdgroups_per_threadgroup);
}
inline Position quadgroups_per_threadgroup(const Thread& t) {
  return scalar(quads(abi::product(t.threads_per_threadgroup)));
}
inline Position dispatch_simdgroups_per_threadgroup(const Thread& t) {
  return scalar(t.dispatch_simdgroups_per_threadgroup);
}
inline Position dispatch_quadgroups_per_threadgroup(const Thread& t) {
  return scalar(quads(abi::product(t.dispatch_threads_per_threadgroup)));
}
inline Position threads_per_simdgroup(const Thread&) {
  return scalar(abi::simd_width);
}
inline Position thread_execution_width(const Thread&) {
  return scalar(abi::simd_width);
}

} // namespace builtins

template <class T>
struct Element {
  using type = T;
};
template <class T, int N>
struct Element<::metal::vec<T, N>> {
  using type = T;
};

template <class T>
constexpr ScalarKind scalar_kind() {
  if constexpr (::metal::is_same_v<T, bool>) {
    return ScalarKind::boolean;
  } else if constexpr (::metal::is_floating_point_v<T>) {
    return ScalarKind::floating;
  } else if constexpr (::metal::is_integral_v<T>) {
    return ::metal::is_signed_v<T> ? ScalarKind::signed_integer : ScalarKind::unsigned_integer;
  } else {
    return ScalarKind::other;
  }
}

// The type of a function's parameter number I.
template <unsigned I, class First, class... Rest>
struct Nth : Nth<I - 1, Rest...> {};
template <class First, class... Rest>
struct Nth<0, First, Rest...> {
  using type = First;
};

// The type of parameter number I of a function, given the type of a pointer to that.
template <unsigned I, class Function>
struct ParameterOf;
template <unsigned I, class... Parameters>
struct ParameterOf<I, void (*)(Parameters...)> : Nth<I, Parameters...> {};
template <unsigned I, class Function>
struct ParameterOf<I, Function* const> : ParameterOf<I, Function*> {};

// What a pointer or reference parameter refers to.
template <class T>
struct Referred;
template <class T>
struct Referred<T*> {
  using type = T;
  static constexpr bool reference = false;
};
template <class T>
struct Referred<T&> {
  using type = T;
  static constexpr bool reference = true;
};

template <unsigned I, class Function>
using PointeeOf = typename Referred<typename ParameterOf<I, Function>::type>::type;

template <class T>
constexpr unsigned size_of = sizeof(T);
template <>
constexpr unsigned size_of<void> = 0;
template <class T>
constexpr unsigned alignment_of = alignof(T);
template <>
constexpr unsigned alignment_of<void> = 1;

template <unsigned I, class Function>
constexpr abi::Pointee pointee() {
  using Parameter = Referred<typename ParameterOf<I, Function>::type>;
  using T = ::metal::remove_cv_t<typename Parameter::type>;
  return {
      size_of<T>,
      alignment_of<T>,
      scalar_kind<typename Element<T>::type>(),
      Parameter::reference,
      ::metal::is_const_v<typename Parameter::type>};
}

} // namespace mpskit::entry
