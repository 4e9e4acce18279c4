// as_type<To>(from): the same bytes seen as another type.
#pragma once

namespace mpskit {

template <class To, class From>
constexpr To reinterpret_bytes(const From& from) {
  static_assert(sizeof(To) == sizeof(From), "as_type: the types differ in size");
  // A vector's assignment is user-provided, which __builtin_bit_cast does not take.
  if constexpr (__is_trivially_copyable(To) && __is_trivially_copyable(From)) {
    return __builtin_bit_cast(To, from);
  } else {
    To to;
    target::copy_bytes(&to, &from, sizeof to);
    return to;
  }
}

} // namespace mpskit

template <class To, class From>
constexpr To as_type(const From& from) {
  if constexpr (mpskit::types::vector_like<From>)
    return mpskit::reinterpret_bytes<To>(mpskit::types::vector_of<From>(from));
  else
    return mpskit::reinterpret_bytes<To>(from);
}
