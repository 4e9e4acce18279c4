// launch: threads=4 group_size=4
// args: zeros:float32:8
#include <metal_stdlib>
using namespace metal;

struct RowState {
  float maximum;
  float sum;
};
kernel void member_of_a_struct(
    device const RowState* rows, uint i [[thread_position_in_grid]]) {
  ((device RowState*)rows)[i].sum = 1.0f;
}
