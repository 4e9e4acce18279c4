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

} // namespace mpskit
