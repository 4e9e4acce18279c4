// launch: threads=4 group_size=4
// args: ones:float32:8 zeros:float32:4
#include <metal_stdlib>
using namespace metal;

struct MeanAndCount {
  float mean;
  float count;
};
kernel void struct_by_value(
    device const MeanAndCount* rows, device float* out, uint i [[thread_position_in_grid]]) {
  MeanAndCount row = rows[i];
  row.mean /= row.count;
  out[i] = row.mean;
}
