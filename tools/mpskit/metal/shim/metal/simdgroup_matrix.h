// simdgroup_matrix: an 8x8 matrix spread over a simdgroup, two neighbouring elements of a row in
// each lane. Every lane of the simdgroup must take part in every operation.
#pragma once

#include "simdgroup.h"

namespace mpskit::simdgroup {

// The row and the first of the two columns that a lane holds: Apple's layout, where the bits of
// the lane's index are interleaved, so that a quad holds a 2x4 block.
struct Fragment {
  unsigned row, column;

  static constexpr Fragment of(unsigned lane) {
    return {(lane >> 4 & 1u) << 2 | (lane >> 1 & 3u), (lane >> 3 & 1u) << 2 | (lane & 1u) << 1};
  }
  // The lane that holds an element; its place there is the column's lowest bit.
  static constexpr unsigned lane_of(unsigned row, unsigned column) {
    return (row >> 2) << 4 | (column >> 2) << 3 | (row & 3u) << 1 | (column >> 1 & 1u);
  }
};

} // namespace mpskit::simdgroup

namespace metal {

template <class T, int Columns, int Rows = Columns>
struct simdgroup_matrix {
  static_assert(Columns == 8 && Rows == 8, "MSL has 8x8 simdgroup matrices only");
  static_assert(mpskit::types::floating<T>);
  using storage_type = vec<T, 2>;

  storage_type elements;

  simdgroup_matrix() = default;
  // A diagonal matrix.
  explicit simdgroup_matrix(T diagonal) {
    const auto at = mpskit::simdgroup::Fragment::of(mpskit::target::lane());
    elements = storage_type(
        at.row == at.column ? diagonal : T(0), at.row == at.column + 1 ? diagonal : T(0));
  }

  storage_type& thread_elements() { return elements; }
  const storage_type& thread_elements() const { return elements; }
};

using simdgroup_float8x8 = simdgroup_matrix<float, 8, 8>;
using simdgroup_half8x8 = simdgroup_matrix<half, 8, 8>;
using simdgroup_bfloat8x8 = simdgroup_matrix<bfloat, 8, 8>;

template <class T, int C, int R = C>
inline simdgroup_matrix<T, C, R> make_filled_simdgroup_matrix(T value) {
  simdgroup_matrix<T, C, R> result;
  result.elements = vec<T, 2>(value);
  return result;
}

} // namespace metal

namespace mpskit::simdgroup {

// Where in memory a lane's elements stand: address of the first, distance to the second.
template <class T>
struct Place {
  T* first;
  long step;

  Place(T* source, ulong elements_per_row, metal::ulong2 origin, bool transposed) {
    const Fragment at = Fragment::of(target::lane());
    const ulong x = origin.x + (transposed ? at.row : at.column);
    const ulong y = origin.y + (transposed ? at.column : at.row);
    first = source + y * elements_per_row + x;
    step = transposed ? long(elements_per_row) : 1;
  }
};

} // namespace mpskit::simdgroup

namespace metal {

template <class T, int C, int R, class U>
inline void simdgroup_load(
    simdgroup_matrix<T, C, R>& matrix,
    const U* source,
    ulong elements_per_row = C,
    ulong2 origin = 0,
    bool transposed = false) {
  const mpskit::simdgroup::Place<const U> place(source, elements_per_row, origin, transposed);
  matrix.elements = vec<T, 2>(T(place.first[0]), T(place.first[place.step]));
}

template <class T, int C, int R, class U>
inline void simdgroup_store(
    const simdgroup_matrix<T, C, R>& matrix,
    U* destination,
    ulong elements_per_row = C,
    ulong2 origin = 0,
    bool transposed = false) {
  const mpskit::simdgroup::Place<U> place(destination, elements_per_row, origin, transposed);
  place.first[0] = U(matrix.elements.x);
  place.first[place.step] = U(matrix.elements.y);
}

// d = a * b + c, summed in float from k = 0 to 7 and rounded once.
template <class D, class A, class B, class Acc>
inline void simdgroup_multiply_accumulate(
    simdgroup_matrix<D, 8, 8>& d,
    const simdgroup_matrix<A, 8, 8>& a,
    const simdgroup_matrix<B, 8, 8>& b,
    const simdgroup_matrix<Acc, 8, 8>& c) {
  using mpskit::simdgroup::Fragment;
  struct Factors {
    vec<A, 2> a;
    vec<B, 2> b;
  };
  const auto lanes = mpskit::target::gather(Factors{a.elements, b.elements});
  const Fragment own = Fragment::of(lanes.lane);
  float sum[2] = {float(c.elements.x), float(c.elements.y)};
  for (unsigned k = 0; k < 8; ++k) {
    const float left = float(lanes[Fragment::lane_of(own.row, k)].a[k & 1u]);
    const vec<B, 2> right = lanes[Fragment::lane_of(k, own.column)].b;
    sum[0] += left * float(right.x);
    sum[1] += left * float(right.y);
  }
  d.elements = vec<D, 2>(D(sum[0]), D(sum[1]));
}

template <class D, class A, class B>
inline void simdgroup_multiply(
    simdgroup_matrix<D, 8, 8>& d,
    const simdgroup_matrix<A, 8, 8>& a,
    const simdgroup_matrix<B, 8, 8>& b) {
  simdgroup_multiply_accumulate(d, a, b, make_filled_simdgroup_matrix<D, 8, 8>(D(0)));
}

template <class T>
inline simdgroup_matrix<T, 8, 8> operator*(
    const simdgroup_matrix<T, 8, 8>& a,
    const simdgroup_matrix<T, 8, 8>& b) {
  simdgroup_matrix<T, 8, 8> d;
  simdgroup_multiply(d, a, b);
  return d;
}

} // namespace metal
