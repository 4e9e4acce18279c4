// Rotary position embedding, specialized by function constants.
#include <metal_math>

constant bool forward [[function_constant(1)]];
constant bool interleaved [[function_constant(2)]];
constant float log2_base [[function_constant(3)]];
constant float rate = is_function_constant_defined(log2_base) ? log2_base : 13.28771238f;

template <typename T>
METAL_FUNC void rotate(thread T& x, thread T& y, float angle) {
  const float cosine = metal::precise::cos(angle);
  const float sine = forward ? metal::precise::sin(angle) : -metal::precise::sin(angle);
  const float rx = float(x) * cosine - float(y) * sine;
  y = static_cast<T>(float(x) * sine + float(y) * cosine);
  x = static_cast<T>(rx);
}

template <typename T>
[[kernel]] void rope(
    const device T* in [[buffer(0)]],
    device T* out [[buffer(1)]],
    constant const int& offset [[buffer(2)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  const float d = static_cast<float>(position.x) / static_cast<float>(grid.x);
  const float angle = static_cast<float>(offset + int(position.y)) * metal::exp2(-d * rate);
  const uint row = 2 * grid.x * position.y;
  const uint first = interleaved ? row + 2 * position.x : row + position.x;
  const uint second = interleaved ? first + 1 : first + grid.x;
  T x = in[first];
  T y = in[second];
  rotate(x, y, angle);
  out[first] = x;
  out[second] = y;
}

#define instantiate_rope(name, type) \
  template [[host_name("rope_" #name)]] [[kernel]] decltype(rope<type>) rope<type>;

instantiate_rope(float32, float)
instantiate_rope(float16, half)
instantiate_rope(bfloat16, bfloat)
