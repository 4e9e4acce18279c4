// Transposes through a tile in threadgroup memory, padded against bank conflicts.
#include <metal_stdlib>

using namespace metal;

template <typename T, ushort TILE = 16>
kernel void transpose(
    device const T* in [[buffer(0)]],
    device T* out [[buffer(1)]],
    constant uint2& shape [[buffer(2)]], // rows, columns
    uint2 position [[thread_position_in_grid]],
    ushort2 local [[thread_position_in_threadgroup]],
    uint2 group [[threadgroup_position_in_grid]]) {
  threadgroup T tile[TILE][TILE + 1];
  if (position.y < shape.x && position.x < shape.y) {
    tile[local.y][local.x] = in[position.y * shape.y + position.x];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const uint2 target = group.yx * TILE + uint2(local);
  if (target.y < shape.y && target.x < shape.x) {
    out[target.y * shape.x + target.x] = tile[local.x][local.y];
  }
}

template [[host_name("transpose_float")]] [[kernel]] decltype(transpose<float>) transpose<float>;
template [[host_name("transpose_uchar")]] [[kernel]] decltype(transpose<uchar>) transpose<uchar>;
