// Attention of one query, a threadgroup for each: an online softmax over the keys, each simdgroup
// with its share of them, combined at the end.
#include <metal_simdgroup>
#include <metal_stdlib>

using namespace metal;

constant bool has_mask [[function_constant(20)]];

template <typename T, int D>
[[kernel]] void attention(
    const device T* queries [[buffer(0)]],
    const device T* keys [[buffer(1)]],
    const device T* values [[buffer(2)]],
    device T* out [[buffer(3)]],
    const constant int& n_keys [[buffer(4)]],
    const constant float& scale [[buffer(5)]],
    const device bool* mask [[buffer(6), function_constant(has_mask)]],
    uint3 tid [[threadgroup_position_in_grid]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  constexpr int GROUPS = 4; // simdgroups
  constexpr int WIDTH = 32;
  constexpr int PER_LANE = D / WIDTH;
  typedef float U;

  thread U q[PER_LANE], o[PER_LANE];
  threadgroup U outputs[GROUPS * D];
  threadgroup U group_maxima[GROUPS];
  threadgroup U group_sums[GROUPS];

  const int query = tid.x;
  for (int i = 0; i < PER_LANE; i++) {
    q[i] = static_cast<U>(scale) * queries[query * D + lane * PER_LANE + i];
    o[i] = 0;
  }
  U maximum = -INFINITY;
  U sum = 0;
  for (int k = simdgroup; k < n_keys; k += GROUPS) {
    if (has_mask && !mask[query * n_keys + k]) {
      continue;
    }
    U score = 0;
    for (int i = 0; i < PER_LANE; i++) {
      score += q[i] * keys[k * D + lane * PER_LANE + i];
    }
    score = simd_sum(score);
    const U larger = max(maximum, score);
    const U factor = precise::exp(maximum - larger);
    const U weight = precise::exp(score - larger);
    maximum = larger;
    sum = sum * factor + weight;
    for (int i = 0; i < PER_LANE; i++) {
      o[i] = o[i] * factor + weight * values[k * D + lane * PER_LANE + i];
    }
  }
  if (lane == 0) {
    group_maxima[simdgroup] = maximum;
    group_sums[simdgroup] = sum;
  }
  for (int i = 0; i < PER_LANE; i++) {
    outputs[simdgroup * D + lane * PER_LANE + i] = o[i];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);

  U overall = -INFINITY;
  for (int g = 0; g < GROUPS; g++) {
    overall = max(overall, group_maxima[g]);
  }
  U total = 0;
  for (int g = 0; g < GROUPS; g++) {
    total += group_sums[g] * precise::exp(group_maxima[g] - overall);
  }
  const int lid = simdgroup * WIDTH + lane;
  for (int d = lid; d < D; d += GROUPS * WIDTH) {
    U column = 0;
    for (int g = 0; g < GROUPS; g++) {
      column += outputs[g * D + d] * precise::exp(group_maxima[g] - overall);
    }
    out[query * D + d] = static_cast<T>(column / total);
  }
}

#define instantiate_attention(type, head_dim)                         \
  template [[host_name("attention_" #type "_" #head_dim)]] [[kernel]] \
  decltype(attention<type, head_dim>) attention<type, head_dim>;

instantiate_attention(float, 64)
instantiate_attention(bfloat, 128)
