// Layer norm over the last dimension, a threadgroup for each row. Mean and variance in one pass.
#include <c10/metal/utils.h>
#include <metal_stdlib>

using namespace metal;
using namespace c10::metal;

struct alignas(16) Moments {
  float mean;
  float m2;
  float count;
};

// Chan's formula for the moments of two sets together.
static inline Moments merge(Moments a, Moments b) {
  const float count = a.count + b.count;
  if (count == 0) {
    return a;
  }
  const float delta = b.mean - a.mean;
  return {
      a.mean + delta * (b.count / count),
      a.m2 + b.m2 + delta * delta * (a.count * b.count / count),
      count};
}

static inline Moments simd_merge(Moments own) {
  for (ushort offset = simdgroup_size / 2; offset > 0; offset /= 2) {
    const Moments other = {
        simd_shuffle_xor(own.mean, offset),
        simd_shuffle_xor(own.m2, offset),
        simd_shuffle_xor(own.count, offset)};
    own = merge(own, other);
  }
  return own;
}

template <typename T>
kernel void layer_norm(
    constant T* input [[buffer(0)]],
    device T* output [[buffer(1)]],
    constant T* weight [[buffer(2)]],
    constant T* bias [[buffer(3)]],
    constant uint& axis_size [[buffer(4)]],
    constant float& epsilon [[buffer(5)]],
    uint row [[threadgroup_position_in_grid]],
    uint lid [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint simdgroups [[simdgroups_per_threadgroup]]) {
  threadgroup Moments partial[simdgroup_size];
  const ulong base = ulong(row) * axis_size;
  Moments own = {0, 0, 0};
  for (uint i = lid; i < axis_size; i += threads) {
    own = merge(own, {static_cast<float>(input[base + i]), 0, 1});
  }
  own = simd_merge(own);
  if (lane == 0) {
    partial[simdgroup] = own;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const Moments none = {0, 0, 0};
  const Moments total = simd_merge(lane < simdgroups ? partial[lane] : none);
  const float scale = precise::rsqrt(total.m2 / total.count + epsilon);
  for (uint i = lid; i < axis_size; i += threads) {
    const float normalized = (static_cast<float>(input[base + i]) - total.mean) * scale;
    output[base + i] = static_cast<T>(normalized * weight[i] + bias[i]);
  }
}

#define instantiate_layer_norm(DTYPE)                                             \
  template [[host_name("layer_norm_" #DTYPE)]] [[kernel]] void layer_norm<DTYPE>( \
      constant DTYPE * input [[buffer(0)]],                                       \
      device DTYPE * output [[buffer(1)]],                                        \
      constant DTYPE * weight [[buffer(2)]],                                      \
      constant DTYPE * bias [[buffer(3)]],                                        \
      constant uint & axis_size [[buffer(4)]],                                    \
      constant float& epsilon [[buffer(5)]],                                      \
      uint row [[threadgroup_position_in_grid]],                                  \
      uint lid [[thread_position_in_threadgroup]],                                \
      uint threads [[threads_per_threadgroup]],                                   \
      uint lane [[thread_index_in_simdgroup]],                                    \
      uint simdgroup [[simdgroup_index_in_threadgroup]],                          \
      uint simdgroups [[simdgroups_per_threadgroup]])

instantiate_layer_norm(float);
instantiate_layer_norm(half);
instantiate_layer_norm(bfloat);
