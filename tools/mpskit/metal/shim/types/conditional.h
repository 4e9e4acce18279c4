// `condition ? x : y` with operands of different types. C++ refuses it between float and half,
// each of which converts to the other, and between two swizzles; in MSL the usual arithmetic
// conversions decide. The front end therefore writes
//     condition ? x : mpskit::other_arm<decltype(x)> = y
// where the assignment, whose precedence is lowest, hands all of y to a function that knows both
// types and returns what C++ takes beside x.
#pragma once

namespace mpskit {

// A float that does not convert to half, so that beside a half it stays one.
struct float_arm {
  float value;
  constexpr operator float() const { return value; }
};

template <class T>
inline constexpr bool is_pointer_type = false;
template <class T>
inline constexpr bool is_pointer_type<T*> = true;

template <class X>
struct OtherArm {
  template <class Y>
  constexpr decltype(auto) operator=(Y&& y) const {
    using V = core::remove_cvref_t<Y>;
    if constexpr (types::small<X> && core::same<V, float>)
      return float_arm{y};
    else if constexpr (types::small<X> && core::integer<V>)
      return X(y);
    else if constexpr (types::small<V> && (core::integer<X> || core::same<X, float>))
      return float(y);
    else if constexpr (types::vector_like<X> && types::vector_operand<V>)
      return types::vector_of<X>(y);
    else if constexpr (types::scalar<X> && types::vector_like<V>)
      return types::vector_of<V>(y);
    else if constexpr (is_pointer_type<X> && core::integer<V>)
      return X(nullptr); // a literal 0
    else if constexpr (core::is_lvalue_reference<Y>)
      return static_cast<Y>(y);
    else
      return V(static_cast<Y&&>(y));
  }
};

template <class X>
inline constexpr OtherArm<core::remove_cvref_t<X>> other_arm{};

} // namespace mpskit
