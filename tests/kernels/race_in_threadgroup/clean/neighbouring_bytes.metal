// launch: threads=64 group_size=64
// args: zeros:uint8:64
#include <metal_stdlib>
using namespace metal;

kernel void neighbouring_bytes(device uchar* x, uint i [[thread_index_in_threadgroup]]) {
  threadgroup uchar tile[64];
  tile[i] = uchar(i);
  x[i] = tile[i] + x[i];
}
