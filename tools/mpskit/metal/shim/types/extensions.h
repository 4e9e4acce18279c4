// What erased programs use where Metal's compiler takes what other C++ compilers refuse.
#pragma once

namespace mpskit {

// A type made to depend on a template parameter that says nothing about it.
template <class Parameter, class T>
struct dependent {
  using type = T;
};

// One designator of `T array[N] = {[first ... last] = value}`; the other elements are zero already.
template <class T, unsigned long N, class V>
constexpr void designate(T (&array)[N], int first, int last, const V& value) {
  for (int i = first; i <= last; ++i) array[i] = value;
}

// `V vector = {parts...}`: components that are not given are zero.
template <class V, class... A>
constexpr V braced(const A&... parts) {
  if constexpr ((types::vector_shape<A>::size + ...) < types::vector_shape<V>::size)
    return braced<V>(parts..., typename types::vector_shape<V>::element(0));
  else
    return V(parts...);
}

template <class T>
inline constexpr bool is_swizzle = false;
template <class T, int N, int... I>
inline constexpr bool is_swizzle<types::swizzle<T, N, I...>> = true;

// An argument of a function: a swizzle as the vector that it selects, anything else as it is.
template <class T>
constexpr decltype(auto) plain(T&& value) {
  using V = core::remove_cvref_t<T>;
  if constexpr (is_swizzle<V>)
    return typename V::value_type(value);
  else
    return static_cast<T&&>(value);
}

} // namespace mpskit
