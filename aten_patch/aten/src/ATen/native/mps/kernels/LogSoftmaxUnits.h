// What the kernels of log_softmax and of its backward share: how rows are cut
// into units, and dealt out to threads.
#pragma once

#include <ATen/native/mps/kernels/LogSoftmax.h>
#include <metal_stdlib>

using namespace metal;
using c10::metal::simdgroup_size;

// ---- units ----

template <typename T>
struct Scalar {
  static constant constexpr unsigned size = 1;
  T value;

  static Scalar filled(T value) {
    return {value};
  }
  static Scalar pack(thread const float (&values)[size]) {
    return {static_cast<T>(values[0])};
  }
  void unpack(thread float (&values)[size]) const {
    values[0] = static_cast<float>(value);
  }
  Scalar packed(uint) const {
    return *this;
  }
};

// Of a 16-bit type. Values stay packed, which takes half of the registers that
// floats would.
template <typename T>
struct Vector {
  static constant constexpr unsigned size = LOG_SOFTMAX_VECTOR_BYTES / 2;
  uint4 bits;

  static Vector filled(T value) {
    return {uint4(as_type<uint>(vec<T, 2>(value)))};
  }
  static Vector pack(thread const float (&values)[size]) {
    Vector packed;
#pragma unroll
    for (unsigned i = 0; i < size; i += 2) {
      packed.bits[i / 2] = as_type<uint>(
          vec<T, 2>(static_cast<T>(values[i]), static_cast<T>(values[i + 1])));
    }
    return packed;
  }
  void unpack(thread float (&values)[size]) const {
#pragma unroll
    for (unsigned i = 0; i < size; i += 2) {
      const auto pair = as_type<vec<T, 2>>(bits[i / 2]);
      values[i] = static_cast<float>(pair.x);
      values[i + 1] = static_cast<float>(pair.y);
    }
  }
  // The same again; `zero` keeps the compiler from seeing that, which would
  // have all values unpacked in registers from one use to the next.
  Vector packed(uint zero) const {
    return {bits ^ zero};
  }
};

template <>
struct Vector<float> {
  static constant constexpr unsigned size = LOG_SOFTMAX_VECTOR_BYTES / 4;
  float4 value;

  static Vector filled(float value) {
    return {float4(value)};
  }
  static Vector pack(thread const float (&values)[size]) {
    return {float4(values[0], values[1], values[2], values[3])};
  }
  void unpack(thread float (&values)[size]) const {
#pragma unroll
    for (unsigned i = 0; i < size; ++i) {
      values[i] = value[i];
    }
  }
  Vector packed(uint) const {
    return *this;
  }
};

// How many single values a thread keeps instead of vectors.
static constexpr unsigned scalars(unsigned vectors) {
  return vectors * LOG_SOFTMAX_SCALARS_PER_VECTOR;
}

// Values of a unit are `stride` apart in memory, or stored at once if `whole`.
template <typename T, typename U, typename idx_t>
static inline void store_unit(U unit, device T* to, idx_t stride, bool whole) {
  if (whole) {
    *reinterpret_cast<device U*>(to) = unit;
    return;
  }
  float values[U::size];
  unit.unpack(values);
#pragma unroll
  for (unsigned i = 0; i < U::size; ++i) {
    to[i * stride] = static_cast<T>(values[i]);
  }
}

// ---- arithmetic ----

// The results of a 16-bit type are rounded more coarsely than fast::exp errs.
template <typename T>
static inline float exponential(float x) {
  return fast::exp(x);
}

template <>
inline float exponential<float>(float x) {
  return precise::exp(x);
}

// ---- where threads and rows are ----

// Units first, first + step, ... below end.
template <typename idx_t>
struct Walk {
  idx_t first;
  idx_t step;
  idx_t end;

  idx_t at(unsigned n) const {
    return first + n * step;
  }
  bool has(unsigned n) const {
    return at(n) < end;
  }
  Walk skip(unsigned n) const {
    return {at(n), step, end};
  }
  Walk back(unsigned n) const {
    return {first - n * step, step, end};
  }
};

// Of a row's first element in each tensor.
template <typename idx_t, unsigned TENSORS>
static inline array<idx_t, TENSORS> row_offsets(
    idx_t row,
    constant LogSoftmaxParams<idx_t, TENSORS>& params) {
  array<idx_t, TENSORS> offsets = {};
  uint d = 0;
  for (; d + 1 < params.row_ndim; ++d) {
    const idx_t outer = row / params.row_dims[d].size;
    const idx_t index = row - outer * params.row_dims[d].size;
#pragma unroll
    for (unsigned tensor = 0; tensor < TENSORS; ++tensor) {
      offsets[tensor] += index * params.row_dims[d].strides[tensor];
    }
    row = outer;
  }
#pragma unroll
  for (unsigned tensor = 0; tensor < TENSORS; ++tensor) {
    offsets[tensor] += row * params.row_dims[d].strides[tensor];
  }
  return offsets;
}

// Elements of T from `at` to the next place where a vector may begin.
template <typename T>
static inline uint elements_to_alignment(device const T* at) {
  const uint past =
      reinterpret_cast<ulong>(at) % LOG_SOFTMAX_VECTOR_BYTES / sizeof(T);
  return (Vector<T>::size - past) % Vector<T>::size;
}

// The vectors of a row, or of a chunk of it, are `count` behind its first
// `head` elements, where memory is aligned for them. What is ahead of them and
// behind them are its edges.
template <typename U, typename idx_t>
struct RowParts {
  idx_t head;
  idx_t count;

  template <typename T>
  static RowParts of(device const T* row, idx_t size) {
    const idx_t head =
        U::size == 1 ? 0 : min(size, idx_t(elements_to_alignment(row)));
    return {head, (size - head) / U::size};
  }
  // Which element that is; past the row's end if it has fewer.
  idx_t edge(idx_t number) const {
    return number < head ? number : number + count * U::size;
  }
};

// Where a thread is among those that share a row, and in its threadgroup.
struct Place {
  uint thread_index;
  uint threads;
  uint simdgroup;
  uint lane;
};

// For Vector::packed. No tensor has so many dimensions, but the compiler does
// not know.
template <typename idx_t, unsigned TENSORS>
static inline uint2 opaque_zeros(
    constant LogSoftmaxParams<idx_t, TENSORS>& params) {
  return uint2(params.row_ndim >> 31, params.row_ndim >> 30);
}
