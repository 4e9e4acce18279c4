// array<T, N>, an aggregate.
#pragma once

namespace metal {

template <class T, size_t N>
struct array {
  using value_type = T;

  T elements[N];

  constexpr T& operator[](size_t i) { return elements[i]; }
  constexpr const T& operator[](size_t i) const { return elements[i]; }
  static constexpr size_t size() { return N; }
  static constexpr bool empty() { return false; }
  constexpr T* data() { return elements; }
  constexpr const T* data() const { return elements; }
  constexpr T* begin() { return elements; }
  constexpr T* end() { return elements + N; }
  constexpr const T* begin() const { return elements; }
  constexpr const T* end() const { return elements + N; }
  constexpr T& front() { return elements[0]; }
  constexpr const T& front() const { return elements[0]; }
  constexpr T& back() { return elements[N - 1]; }
  constexpr const T& back() const { return elements[N - 1]; }
  constexpr void fill(const T& value) {
    for (T& element : elements) element = value;
  }
};

} // namespace metal
