// matrix<T, Columns, Rows>: floatNxM has N columns of M components each, as the name says.
#pragma once

namespace mpskit::types {

template <class T, int Columns, int Rows>
struct matrix {
  using column = vec<T, Rows>;

  column columns[Columns];

  matrix() = default;

  // A scalar goes on the diagonal.
  explicit constexpr matrix(T diagonal) {
    for (int c = 0; c < Columns; ++c)
      columns[c] = generate<T, Rows>([&](int r) { return r == c ? diagonal : T(0); });
  }

  template <class... V>
    requires(sizeof...(V) == Columns && (core::same<vector_of<V>, column> && ...))
  constexpr matrix(V... values) : columns{column(values)...} {}

  template <class... S>
    requires(sizeof...(S) == Columns * Rows && (scalar<S> && ...))
  constexpr matrix(S... values) {
    const T all[] = {static_cast<T>(values)...};
    for (int c = 0; c < Columns; ++c)
      columns[c] = generate<T, Rows>([&](int r) { return all[c * Rows + r]; });
  }

  template <class U>
  explicit constexpr matrix(const matrix<U, Columns, Rows>& other) {
    for (int c = 0; c < Columns; ++c) columns[c] = column(other[c]);
  }

  template <class I>
  constexpr column& operator[](I i) {
    return columns[i];
  }
  template <class I>
  constexpr const column& operator[](I i) const {
    return columns[i];
  }
};

// The matrix whose column c is f(c).
template <class M, class F>
constexpr M by_column(F f) {
  M result;
  int c = 0;
  for (auto& column : result.columns) column = f(c++);
  return result;
}

template <class T, int C, int R>
constexpr matrix<T, C, R> operator+(const matrix<T, C, R>& a, const matrix<T, C, R>& b) {
  return by_column<matrix<T, C, R>>([&](int c) { return a[c] + b[c]; });
}
template <class T, int C, int R>
constexpr matrix<T, C, R> operator-(const matrix<T, C, R>& a, const matrix<T, C, R>& b) {
  return by_column<matrix<T, C, R>>([&](int c) { return a[c] - b[c]; });
}
template <class T, int C, int R>
constexpr matrix<T, C, R> operator-(const matrix<T, C, R>& a) {
  return by_column<matrix<T, C, R>>([&](int c) { return -a[c]; });
}
template <class T, int C, int R, scalar S>
constexpr matrix<T, C, R> operator*(const matrix<T, C, R>& a, S s) {
  return by_column<matrix<T, C, R>>([&](int c) { return a[c] * static_cast<T>(s); });
}
template <class T, int C, int R, scalar S>
constexpr matrix<T, C, R> operator*(S s, const matrix<T, C, R>& a) {
  return a * s;
}

template <class T, int C, int R, vector_like V>
  requires core::same<vector_of<V>, vec<T, C>>
constexpr vec<T, R> operator*(const matrix<T, C, R>& a, const V& v) {
  const vec<T, C> x = v;
  vec<T, R> sum = a[0] * x[0];
  for (int c = 1; c < C; ++c) sum += a[c] * x[c];
  return sum;
}
template <class T, int C, int R, vector_like V>
  requires core::same<vector_of<V>, vec<T, R>>
constexpr vec<T, C> operator*(const V& v, const matrix<T, C, R>& a) {
  const vec<T, R> x = v;
  return generate<T, C>([&](int c) {
    T sum = x[0] * a[c][0];
    for (int r = 1; r < R; ++r) sum += x[r] * a[c][r];
    return sum;
  });
}
template <class T, int Inner, int R, int C>
constexpr matrix<T, C, R> operator*(const matrix<T, Inner, R>& a, const matrix<T, C, Inner>& b) {
  return by_column<matrix<T, C, R>>([&](int c) { return a * b[c]; });
}

#define MPSKIT_COMPOUND(op)                                                    \
  template <class T, int C, int R, class B>                                    \
  constexpr matrix<T, C, R>& operator op##=(matrix<T, C, R>& a, const B& b) {  \
    return a = a op b;                                                         \
  }
MPSKIT_COMPOUND(+)
MPSKIT_COMPOUND(-)
MPSKIT_COMPOUND(*)
#undef MPSKIT_COMPOUND

template <class T, int C, int R>
constexpr bool operator==(const matrix<T, C, R>& a, const matrix<T, C, R>& b) {
  for (int c = 0; c < C; ++c)
    for (int r = 0; r < R; ++r)
      if (a[c][r] != b[c][r]) return false;
  return true;
}

} // namespace mpskit::types

#define MPSKIT_MATRICES(T)                        \
  using T##2x2 = mpskit::types::matrix<T, 2, 2>;  \
  using T##2x3 = mpskit::types::matrix<T, 2, 3>;  \
  using T##2x4 = mpskit::types::matrix<T, 2, 4>;  \
  using T##3x2 = mpskit::types::matrix<T, 3, 2>;  \
  using T##3x3 = mpskit::types::matrix<T, 3, 3>;  \
  using T##3x4 = mpskit::types::matrix<T, 3, 4>;  \
  using T##4x2 = mpskit::types::matrix<T, 4, 2>;  \
  using T##4x3 = mpskit::types::matrix<T, 4, 3>;  \
  using T##4x4 = mpskit::types::matrix<T, 4, 4>;
MPSKIT_MATRICES(float)
MPSKIT_MATRICES(half)
namespace metal {
MPSKIT_MATRICES(float)
MPSKIT_MATRICES(half)
using mpskit::types::matrix;
} // namespace metal
#undef MPSKIT_MATRICES
