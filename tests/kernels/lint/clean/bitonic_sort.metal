// Sorts rows of up to N elements in threadgroup memory, and the indices with them.
#include <metal_stdlib>

using namespace metal;

template <typename T>
struct LessThan {
  static constexpr constant T last = metal::numeric_limits<T>::max();
  bool operator()(T a, T b) const {
    return a < b;
  }
};

template <typename T>
METAL_FUNC void exchange(thread T& a, thread T& b) {
  const T temporary = a;
  a = b;
  b = temporary;
}

template <typename T, uint N>
[[kernel, max_total_threads_per_threadgroup(N / 2)]] void bitonic_sort(
    device const T* in [[buffer(0)]],
    device T* out [[buffer(1)]],
    device uint* indices [[buffer(2)]],
    constant const uint& size [[buffer(3)]],
    uint row [[threadgroup_position_in_grid]],
    uint lid [[thread_position_in_threadgroup]]) {
  threadgroup T keys[N];
  threadgroup uint places[N];
  const LessThan<T> less;
  for (uint i = lid; i < N; i += N / 2) {
    keys[i] = i < size ? in[row * size + i] : T(LessThan<T>::last);
    places[i] = i;
  }
  for (uint block = 2; block <= N; block *= 2) {
    for (uint step = block / 2; step > 0; step /= 2) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      const uint low = 2 * step * (lid / step) + lid % step;
      const bool ascending = (low & block) == 0;
      T a = keys[low];
      T b = keys[low + step];
      uint at_a = places[low], at_b = places[low + step];
      const bool before = less(a, b) || (!less(b, a) && at_a < at_b);
      if (before != ascending) {
        exchange(a, b);
        exchange(at_a, at_b);
      }
      keys[low] = a;
      keys[low + step] = b;
      places[low] = at_a;
      places[low + step] = at_b;
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint i = lid; i < size; i += N / 2) {
    out[row * size + i] = keys[i];
    indices[row * size + i] = places[i];
  }
}

template [[host_name("bitonic_sort_float_256")]] [[kernel]] decltype(bitonic_sort<float, 256>)
    bitonic_sort<float, 256>;
template [[host_name("bitonic_sort_int_64")]] [[kernel]] decltype(bitonic_sort<int, 64>)
    bitonic_sort<int, 64>;
