// Binary operations on tensors of any layout: an index per element, offsets from strides.
#include <c10/metal/indexing.h>
#include <metal_stdlib>

using namespace metal;

struct AddFunctor {
  template <typename T>
  inline T operator()(const T a, const T b) {
    return static_cast<T>(a + b);
  }
};

struct HypotFunctor {
  template <typename T>
  inline T operator()(const T a, const T b) {
    return static_cast<T>(precise::sqrt(float(a) * float(a) + float(b) * float(b)));
  }
};

struct Layout {
  uint ndim;
  uint sizes[4];
  long strides[3][4]; // in elements: of the output, a and b
};

template <typename T, typename F>
kernel void binary_strided(
    device T* out [[buffer(0)]],
    constant T* a [[buffer(1)]],
    constant T* b [[buffer(2)]],
    constant Layout& layout [[buffer(3)]],
    uint index [[thread_position_in_grid]]) {
  F f;
  long offsets[3] = {0, 0, 0};
  for (uint d = 0; d < layout.ndim; ++d) {
    const uint at = index % layout.sizes[d];
    index /= layout.sizes[d];
    for (uint t = 0; t < 3; ++t) {
      offsets[t] += long(at) * layout.strides[t][d];
    }
  }
  out[offsets[0]] = f(a[offsets[1]], b[offsets[2]]);
}

#define REGISTER_BINARY(NAME, FUNCTOR, DTYPE)                  \
  template [[host_name(#NAME "_strided_" #DTYPE)]] kernel void \
  binary_strided<DTYPE, FUNCTOR>(                              \
      device DTYPE * out [[buffer(0)]],                        \
      constant DTYPE * a [[buffer(1)]],                        \
      constant DTYPE * b [[buffer(2)]],                        \
      constant Layout & layout [[buffer(3)]],                  \
      uint index [[thread_position_in_grid]])

REGISTER_BINARY(add, AddFunctor, float);
REGISTER_BINARY(add, AddFunctor, half);
REGISTER_BINARY(add, AddFunctor, int);
REGISTER_BINARY(hypot, HypotFunctor, float);
REGISTER_BINARY(hypot, HypotFunctor, bfloat);
