// `condition ? x : y` with operands of different types. C++ refuses it between float and half,
// each of which converts to the other, and between two swizzles; in MSL the usual arithmetic
// conversions decide. The front end therefore writes `condition ? mpskit::arm(x) : y`.
#pragma once

namespace mpskit {

// The types that a scalar x of type T may turn into to meet y. Where y has none of them, C++ falls
// back to the built-in operator and thus to the arithmetic conversions.
template <class T, class U>
concept arm_meets = core::same<T, U> || types::vector_like<U> ||
    (core::integer<T> && (core::same<U, decltype(+T())> || types::small<U>)) ||
    (types::small<T> && core::same<U, float>);

template <class T>
struct arm_value {
  T value;
  template <class U>
    requires arm_meets<T, U>
  constexpr operator U() const {
    return static_cast<U>(value);
  }
};

template <class T>
constexpr decltype(auto) arm(T&& x) {
  using V = core::remove_cvref_t<T>;
  if constexpr (types::scalar<V>)
    return arm_value<V>{x};
  else if constexpr (types::vector_like<V>)
    return types::vector_of<V>(x);
  else
    return static_cast<T&&>(x);
}

} // namespace mpskit
