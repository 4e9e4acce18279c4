// log_softmax over rows, as log_softmax_row does it: one work-group a row, the row's values in
// registers, read once in vectors of 4; maximum and sum meet in local memory.
//
// Launched with 64 work-items a row of `4 * 64 * VECTORS` values.

#define ITEMS 64

float reduce_max(float value, __local float* shared) {
  const uint item = get_local_id(0);
  shared[item] = value;
  for (uint distance = ITEMS / 2; distance > 0; distance /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < distance) shared[item] = max(shared[item], shared[item + distance]);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const float result = shared[0];
  barrier(CLK_LOCAL_MEM_FENCE);
  return result;
}

float reduce_sum(float value, __local float* shared) {
  const uint item = get_local_id(0);
  shared[item] = value;
  for (uint distance = ITEMS / 2; distance > 0; distance /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < distance) shared[item] += shared[item + distance];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  return shared[0];
}

__kernel void log_softmax_row(__global const float4* input, __global float4* output) {
  __local float shared[ITEMS];
  const uint item = get_local_id(0);
  const uint row = get_group_id(0) * ITEMS * VECTORS;
  float4 values[VECTORS];
  float maximum = -FLT_MAX;
  for (uint n = 0; n < VECTORS; ++n) {
    values[n] = input[row + n * ITEMS + item];
    const float4 v = values[n];
    maximum = max(maximum, max(max(v.x, v.y), max(v.z, v.w)));
  }
  maximum = reduce_max(maximum, shared);
  float sum = 0;
  for (uint n = 0; n < VECTORS; ++n) {
    const float4 e = exp(values[n] - maximum);
    sum += (e.x + e.y) + (e.z + e.w);
  }
  const float log_sum = log(reduce_sum(sum, shared));
  for (uint n = 0; n < VECTORS; ++n) {
    output[row + n * ITEMS + item] = (values[n] - maximum) - log_sum;
  }
}
