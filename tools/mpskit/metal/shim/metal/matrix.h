// Matrix functions.
#pragma once

namespace metal {

template <class T, int C, int R>
constexpr matrix<T, R, C> transpose(const matrix<T, C, R>& a) {
  return mpskit::types::by_column<matrix<T, R, C>>([&](int r) {
    return mpskit::types::generate<T, C>([&](int c) { return a[c][r]; });
  });
}

template <class T>
constexpr T determinant(const matrix<T, 2, 2>& a) {
  return a[0][0] * a[1][1] - a[1][0] * a[0][1];
}
template <class T>
constexpr T determinant(const matrix<T, 3, 3>& a) {
  return a[0][0] * (a[1][1] * a[2][2] - a[2][1] * a[1][2]) -
      a[1][0] * (a[0][1] * a[2][2] - a[2][1] * a[0][2]) +
      a[2][0] * (a[0][1] * a[1][2] - a[1][1] * a[0][2]);
}
// By the 2x2 minors of the upper two and the lower two rows.
template <class T>
constexpr T determinant(const matrix<T, 4, 4>& a) {
  const auto upper = [&](int i, int j) { return a[i][0] * a[j][1] - a[j][0] * a[i][1]; };
  const auto lower = [&](int i, int j) { return a[i][2] * a[j][3] - a[j][2] * a[i][3]; };
  return upper(0, 1) * lower(2, 3) - upper(0, 2) * lower(1, 3) + upper(0, 3) * lower(1, 2) +
      upper(1, 2) * lower(0, 3) - upper(1, 3) * lower(0, 2) + upper(2, 3) * lower(0, 1);
}

} // namespace metal
