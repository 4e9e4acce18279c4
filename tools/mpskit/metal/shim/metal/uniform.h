// uniform<T>: a value that is the same in every thread. On the GPU it may live in a scalar
// register; here it is a T.
#pragma once

namespace metal {

template <class T>
struct uniform {
  T value;

  uniform() = default;
  template <class U>
    requires is_convertible_v<U, T>
  constexpr uniform(U value) : value(static_cast<T>(value)) {}

  constexpr operator T() const { return value; }
};

template <class T>
constexpr uniform<T> make_uniform(T value) {
  return uniform<T>(value);
}

} // namespace metal
