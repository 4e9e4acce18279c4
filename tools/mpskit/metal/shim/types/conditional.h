// `condition ? x : y` with operands of different types. C++ refuses it between float and half,
// each of which converts to the other, and between two swizzles; in MSL the usual arithmetic
// conversions decide. The front end therefore writes
//     condition ? x : mpskit::other_arm<decltype(x)> = y
// where the assignment, whose precedence is lowest, hands all of y to a function that knows both
// types and returns what C++ takes beside x.
#pragma once

namespace mpskit {

// A float that does not convert to half, so that beside a half it stays one.
// (NVRTC has the two meet as doubles.)
struct float_arm {
  float value;
  constexpr operator float() const { return value; }
};

// A bfloat beside an integer, which C++ cannot make one: the integer becomes one of these. It is
// a bfloat or a float to whatever it stands for, and no integer, which would win in C++.
struct bfloat_arm {
  types::bfloat value;

  constexpr bfloat_arm(types::bfloat value) : value(value) {}
  template <core::integer I>
  constexpr bfloat_arm(I value) : value(value) {}

  template <class T>
    requires core::one_of<T, types::bfloat, float>
  constexpr operator T() const {
    return T(value);
  }

#define MPSKIT_OPERATOR(op)                                                          \
  template <types::scalar S>                                                         \
  friend constexpr auto operator op(bfloat_arm a, S b) {                             \
    return a.value op b;                                                             \
  }                                                                                  \
  template <types::scalar S>                                                         \
  friend constexpr auto operator op(S a, bfloat_arm b) {                             \
    return a op b.value;                                                             \
  }
  MPSKIT_OPERATOR(+)
  MPSKIT_OPERATOR(-)
  MPSKIT_OPERATOR(*)
  MPSKIT_OPERATOR(/)
#undef MPSKIT_OPERATOR
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
    if constexpr (core::same<X, types::half> && core::same<V, float>)
      return float_arm{y};
    else if constexpr (core::same<X, types::bfloat> && core::same<V, float>)
      return float(y);
    else if constexpr (types::small<X> && core::integer<V>)
      return X(y);
    else if constexpr (core::same<V, types::bfloat> && core::integer<X>)
      return bfloat_arm(y);
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
