// Dropout with the counter-based generator of c10: a thread's numbers depend on its index alone.
#include <c10/metal/random.h>
#include <metal_stdlib>

using namespace metal;

template <typename T>
kernel void dropout(
    device T* output [[buffer(0)]],
    device bool* mask [[buffer(1)]],
    constant T* input [[buffer(2)]],
    constant float& p [[buffer(3)]],
    constant long2& seed_and_offset [[buffer(4)]],
    uint tid [[thread_position_in_grid]]) {
  const float scale = 1.0 / (1.0 - p);
  const float draw =
      c10::metal::rand(seed_and_offset.x, seed_and_offset.y + tid);
  const bool kept = draw >= p;
  mask[tid] = kept;
  output[tid] = static_cast<T>(kept ? static_cast<float>(input[tid]) * scale : 0.0f);
}

#define REGISTER_DROPOUT(DTYPE)                                      \
  template [[host_name("dropout_" #DTYPE)]] kernel void              \
  dropout<DTYPE>(                                                    \
      device DTYPE*, device bool*, constant DTYPE*, constant float&, \
      constant long2&, uint)

REGISTER_DROPOUT(float);
REGISTER_DROPOUT(half);
