#include <ATen/native/mps/kernels/LogSoftmaxBackward.h>
#include <ATen/native/mps/kernels/LogSoftmaxUnits.h>
#include <metal_stdlib>

// grad_input = grad - exp(output) * sum(grad), the sum over each row.

// ---- tensors ----

// The first element of a row in each tensor, or of a chunk of a row.
template <typename T>
struct Tensors {
  device const T* grad;
  device const T* output;
  device T* grad_input;

  template <typename idx_t>
  Tensors at_row(idx_t row, constant LogSoftmaxBackwardParams<idx_t>& params)
      const {
    const auto offsets = row_offsets(row, params);
    return {
        grad + offsets[LOG_SOFTMAX_BACKWARD_GRAD],
        output + offsets[LOG_SOFTMAX_BACKWARD_OUTPUT],
        grad_input + offsets[LOG_SOFTMAX_BACKWARD_GRAD_INPUT]};
  }

  template <typename idx_t>
  Tensors along_row(
      idx_t elements,
      constant LogSoftmaxBackwardParams<idx_t>& params) const {
    constant array<idx_t, LOG_SOFTMAX_BACKWARD_TENSORS>& strides =
        params.dim_strides;
    return {
        grad + elements * strides[LOG_SOFTMAX_BACKWARD_GRAD],
        output + elements * strides[LOG_SOFTMAX_BACKWARD_OUTPUT],
        grad_input + elements * strides[LOG_SOFTMAX_BACKWARD_GRAD_INPUT]};
  }
};

// How to get from unit to unit, and from value to value within a unit, which is
// in one piece if `whole`.
template <typename idx_t>
struct Steps {
  idx_t unit;
  idx_t value;
  bool whole;
};

template <typename U, typename T, typename idx_t>
static inline Steps<idx_t> steps_along_row(device const T* row, idx_t stride) {
  const bool whole =
      U::size == 1 || (stride == 1 && elements_to_alignment(row) == 0);
  return {U::size * stride, stride, whole};
}

// Units that there are not are zeros, which add nothing to a sum.
template <unsigned N, typename T, typename U, typename idx_t>
static inline void load_units(
    thread U (&units)[N],
    device const T* from,
    Steps<idx_t> steps,
    Walk<idx_t> walk) {
#pragma unroll
  for (unsigned n = 0; n < N; ++n) {
    units[n] = U::filled(static_cast<T>(0));
    if (steps.whole && walk.has(n)) {
      units[n] =
          *reinterpret_cast<device const U*>(from + walk.at(n) * steps.unit);
    }
  }
  if (steps.whole) {
    return;
  }
  float values[U::size];
#pragma unroll
  for (unsigned n = 0; n < N; ++n) {
    if (walk.has(n)) {
#pragma unroll
      for (unsigned i = 0; i < U::size; ++i) {
        values[i] =
            static_cast<float>(from[walk.at(n) * steps.unit + i * steps.value]);
      }
      units[n] = U::pack(values);
    }
  }
}

// ---- arithmetic ----

// Value i of each unit belongs to row i % ROWS.
template <unsigned ROWS, unsigned N, typename U>
static inline void add_units(
    thread float (&sums)[ROWS],
    thread const U (&units)[N]) {
  float values[U::size];
#pragma unroll
  for (unsigned n = 0; n < N; ++n) {
    units[n].unpack(values);
#pragma unroll
    for (unsigned i = 0; i < U::size; ++i) {
      sums[i % ROWS] += values[i];
    }
  }
}

template <typename T>
static inline float differentiate(float grad, float output, float sum) {
  return grad - exponential<T>(output) * sum;
}

template <typename T, unsigned ROWS, typename U>
static inline U differentiate(
    U grad,
    U output,
    thread const float (&sums)[ROWS],
    uint zero) {
  float grads[U::size];
  float outputs[U::size];
  grad.packed(zero).unpack(grads);
  output.unpack(outputs);
#pragma unroll
  for (unsigned i = 0; i < U::size; ++i) {
    grads[i] = differentiate<T>(grads[i], outputs[i], sums[i % ROWS]);
  }
  return U::pack(grads);
}

// ---- a thread's share of a row, or of neighbouring rows ----

// How many units a thread holds, given for vectors: a batch of `grads` units of
// grad, of which as many as `outputs` meet theirs of output at a time. A longer
// row takes several batches, if `rereads`; otherwise there must be one.
template <typename U, unsigned GRADS, unsigned OUTPUTS, bool REREADS>
struct Held {
  static constant constexpr unsigned grads =
      U::size == 1 ? scalars(GRADS) : GRADS;
  static constant constexpr unsigned outputs =
      U::size == 1 ? scalars(OUTPUTS) : OUTPUTS;
  static constant constexpr bool rereads = REREADS;
};

// The last batch of grad stays in registers from the read to the write. Those
// before it are read again backwards, while caches have them.
template <typename T, typename U, unsigned ROWS, typename H, typename idx_t>
struct Share {
  Tensors<T> tensors; // at the first unit of the row
  Steps<idx_t> grad_steps;
  Steps<idx_t> output_steps;
  Steps<idx_t> grad_input_steps;
  Walk<idx_t> walk; // the batch that is held
  idx_t batches;
  uint zero; // see Vector::packed
  U grads[H::grads];
  U outputs[H::outputs];

  // All but the first batch are full.
  void begin(Walk<idx_t> units) {
    walk = units;
    batches = 1;
    if (H::rereads) {
      const idx_t count = (units.end + units.step - 1) / units.step;
      batches = max((count + H::grads - 1) / H::grads, idx_t(1));
      walk = walk.back(batches * H::grads - count);
    }
  }

  Walk<idx_t> last() const {
    return walk.skip((batches - 1) * H::grads);
  }

  void load_grads(Walk<idx_t> at) {
    walk = at;
    load_units(grads, tensors.grad, grad_steps, at);
  }

  void load_outputs(Walk<idx_t> at) {
    load_units(outputs, tensors.output, output_steps, at);
  }

  void add_grads(thread float (&sums)[ROWS]) {
    add_units(sums, grads);
    for (idx_t batch = 1; H::rereads && batch < batches; ++batch) {
      load_grads(walk.skip(H::grads));
      add_units(sums, grads);
    }
  }

  // The first outputs must be there already.
  void store_batch(thread const float (&sums)[ROWS]) {
#pragma unroll
    for (unsigned n = 0; n < H::grads; ++n) {
      const unsigned at = n % H::outputs;
      if (n != 0 && at == 0) {
        load_outputs(walk.skip(n));
      }
      if (walk.has(n)) {
        store_unit(
            differentiate<T>(grads[n], outputs[at], sums, zero),
            tensors.grad_input + walk.at(n) * grad_input_steps.unit,
            grad_input_steps.value,
            grad_input_steps.whole);
      }
    }
  }

  void store(thread const float (&sums)[ROWS]) {
    store_batch(sums);
    for (idx_t batch = 1; H::rereads && batch < batches; ++batch) {
      load_grads(walk.back(H::grads));
      load_outputs(walk);
      store_batch(sums);
    }
  }
};

// Of one row, or of a chunk of it. What lies ahead of the first place where a
// vector of output may begin, and behind the last whole vector, is one value
// for each of the first threads.
template <typename T, typename U, typename H, typename idx_t>
struct RowShare {
  Share<T, U, 1, H, idx_t> units;
  bool has_edge;
  device T* edge;
  float edge_grad;
  float edge_output;

  // `sums` says whether grad is to be added up, so that all batches are read.
  RowShare(
      Tensors<T> row,
      Walk<idx_t> elements,
      constant LogSoftmaxBackwardParams<idx_t>& params,
      bool sums) {
    constant array<idx_t, LOG_SOFTMAX_BACKWARD_TENSORS>& strides =
        params.dim_strides;
    const auto parts = RowParts<U, idx_t>::of(row.output, elements.end);
    const auto body = row.along_row(parts.head, params);
    units.tensors = body;
    units.grad_steps =
        steps_along_row<U>(body.grad, strides[LOG_SOFTMAX_BACKWARD_GRAD]);
    units.output_steps =
        steps_along_row<U>(body.output, strides[LOG_SOFTMAX_BACKWARD_OUTPUT]);
    units.grad_input_steps = steps_along_row<U, T>(
        body.grad_input, strides[LOG_SOFTMAX_BACKWARD_GRAD_INPUT]);
    units.zero = opaque_zeros(params).x;
    units.begin({elements.first, elements.step, parts.count});
    // All ahead, so that output arrives while the gradients are added.
    const auto last = units.last();
    if (!sums) {
      units.walk = last;
    }
    units.load_grads(units.walk);
    units.load_outputs(last);

    const idx_t at = parts.edge(elements.first);
    has_edge = at < elements.end;
    if (has_edge) {
      const auto tensors = row.along_row(at, params);
      edge = tensors.grad_input;
      edge_grad = static_cast<float>(*tensors.grad);
      edge_output = static_cast<float>(*tensors.output);
    }
  }

  float sum() {
    float sums[1] = {has_edge ? edge_grad : 0.0f};
    units.add_grads(sums);
    return sums[0];
  }

  void store(float sum) {
    const float sums[1] = {sum};
    units.store(sums);
    if (has_edge) {
      *edge = static_cast<T>(differentiate<T>(edge_grad, edge_output, sum));
    }
  }
};

// Sums over the threads of a row, neighbours all: a power of two of one
// simdgroup's lanes, or all simdgroups of the threadgroup. Used once per
// kernel: `scratch` is not safe to write again without another barrier.
static inline float row_sum(
    float value,
    threadgroup float (&scratch)[simdgroup_size],
    Place place) {
  for (uint bit = 1; bit < min(place.threads, simdgroup_size); bit *= 2) {
    value += simd_shuffle_xor(value, bit);
  }
  if (place.threads <= simdgroup_size) {
    return value;
  }
  if (place.lane == 0) {
    scratch[place.simdgroup] = value;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const bool exists = place.lane < place.threads / simdgroup_size;
  return simd_sum(exists ? scratch[place.lane] : 0.0f);
}

template <typename U, typename H, typename T, typename idx_t>
static inline void differentiate_row(
    Tensors<T> tensors,
    constant LogSoftmaxBackwardParams<idx_t>& params,
    idx_t row,
    Place place,
    threadgroup float (&scratch)[simdgroup_size]) {
  RowShare<T, U, H, idx_t> share(
      tensors.at_row(row, params),
      {place.thread_index, place.threads, params.dim_size},
      params,
      true);
  share.store(row_sum(share.sum(), scratch, place));
}

template <typename U>
using RowHeld = Held<
    U,
    LOG_SOFTMAX_BACKWARD_ROW_VECTORS,
    LOG_SOFTMAX_BACKWARD_ROW_OUTPUTS,
    false>;

// Grid: (threads of a row, rows, rows past the y axis' limit). Rows of a
// simdgroup or less share a threadgroup.
template <typename T, typename idx_t>
[[kernel, max_total_threads_per_threadgroup(1024)]] void
log_softmax_backward_row(
    device const T* grad [[buffer(0)]],
    device const T* output [[buffer(1)]],
    device T* grad_input [[buffer(2)]],
    constant LogSoftmaxBackwardParams<idx_t>& params [[buffer(3)]],
    uint3 position [[thread_position_in_grid]],
    uint3 grid [[threads_per_grid]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float scratch[simdgroup_size];
  const idx_t row = position.y + static_cast<idx_t>(grid.y) * position.z;
  if (row >= params.rows) {
    return;
  }
  const Tensors<T> tensors = {grad, output, grad_input};
  const Place place = {position.x, grid.x, simdgroup, lane};
  if (params.vectors) {
    differentiate_row<Vector<T>, RowHeld<Vector<T>>>(
        tensors, params, row, place, scratch);
  } else {
    differentiate_row<Scalar<T>, RowHeld<Scalar<T>>>(
        tensors, params, row, place, scratch);
  }
}

template <typename U>
using LongRowHeld = Held<
    U,
    LOG_SOFTMAX_BACKWARD_LONG_ROW_VECTORS,
    LOG_SOFTMAX_BACKWARD_LONG_ROW_OUTPUTS,
    true>;

// Grid as log_softmax_backward_row's.
template <typename T, typename idx_t>
[[kernel, max_total_threads_per_threadgroup(512)]] void
log_softmax_backward_long_row(
    device const T* grad [[buffer(0)]],
    device const T* output [[buffer(1)]],
    device T* grad_input [[buffer(2)]],
    constant LogSoftmaxBackwardParams<idx_t>& params [[buffer(3)]],
    uint3 position [[thread_position_in_grid]],
    uint3 grid [[threads_per_grid]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float scratch[simdgroup_size];
  const idx_t row = position.y + static_cast<idx_t>(grid.y) * position.z;
  if (row >= params.rows) {
    return;
  }
  const Tensors<T> tensors = {grad, output, grad_input};
  const Place place = {position.x, grid.x, simdgroup, lane};
  if (params.vectors) {
    differentiate_row<Vector<T>, LongRowHeld<Vector<T>>>(
        tensors, params, row, place, scratch);
  } else {
    differentiate_row<Scalar<T>, LongRowHeld<Scalar<T>>>(
        tensors, params, row, place, scratch);
  }
}

// ---- chunks of a row ----

template <typename U>
using ChunkHeld = Held<
    U,
    LOG_SOFTMAX_BACKWARD_CHUNK_VECTORS,
    LOG_SOFTMAX_BACKWARD_CHUNK_OUTPUTS,
    true>;

// Adds a chunk of grad. No output is read, so grad alone says where vectors
// are.
template <typename U, typename T, typename idx_t>
static inline void add_chunk(
    device const T* grad,
    device float* partials,
    constant LogSoftmaxBackwardParams<idx_t>& params,
    uint3 position,
    Place place,
    threadgroup float (&scratch)[simdgroup_size]) {
  constexpr unsigned held = ChunkHeld<U>::grads;
  const auto offsets = row_offsets(idx_t(position.z), params);
  const idx_t stride = params.dim_strides[LOG_SOFTMAX_BACKWARD_GRAD];
  const idx_t begin = position.y * params.chunk_size;
  const idx_t size = min(params.chunk_size, params.dim_size - begin);
  device const T* chunk =
      grad + offsets[LOG_SOFTMAX_BACKWARD_GRAD] + begin * stride;
  const auto parts = RowParts<U, idx_t>::of(chunk, size);
  device const T* body = chunk + parts.head * stride;
  const auto steps = steps_along_row<U>(body, stride);

  const idx_t edge = parts.edge(position.x);
  float sums[1] = {0};
  if (edge < size) {
    sums[0] = static_cast<float>(chunk[edge * stride]);
  }
  U units[held];
  for (Walk<idx_t> walk = {position.x, place.threads, parts.count}; walk.has(0);
       walk = walk.skip(held)) {
    load_units(units, body, steps, walk);
    add_units(sums, units);
  }
  const float total = row_sum(sums[0], scratch, place);
  if (place.thread_index == 0) {
    partials[position.z * params.chunks + position.y] = total;
  }
}

// Grid: (threads of a chunk, chunks, rows), a threadgroup for each chunk.
// `partials` is rows x chunks.
template <typename T, typename idx_t>
[[kernel, max_total_threads_per_threadgroup(1024)]] void
log_softmax_backward_partial(
    device const T* grad [[buffer(0)]],
    device float* partials [[buffer(1)]],
    constant LogSoftmaxBackwardParams<idx_t>& params [[buffer(2)]],
    uint3 position [[thread_position_in_grid]],
    uint3 grid [[threads_per_grid]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float scratch[simdgroup_size];
  const Place place = {position.x, grid.x, simdgroup, lane};
  if (params.vectors) {
    add_chunk<Vector<T>>(grad, partials, params, position, place, scratch);
  } else {
    add_chunk<Scalar<T>>(grad, partials, params, position, place, scratch);
  }
}

// Every threadgroup of a row adds the row's partials again, which costs less
// than a third launch. The chunk is loaded ahead, to arrive meanwhile.
template <typename U, typename T, typename idx_t>
static inline void finalize_chunk(
    Tensors<T> tensors,
    device const float* partials,
    constant LogSoftmaxBackwardParams<idx_t>& params,
    uint3 position,
    Place place,
    threadgroup float (&scratch)[simdgroup_size]) {
  const idx_t begin = position.y * params.chunk_size;
  const idx_t size = min(params.chunk_size, params.dim_size - begin);
  RowShare<T, U, ChunkHeld<U>, idx_t> share(
      tensors.at_row(idx_t(position.z), params).along_row(begin, params),
      {position.x, place.threads, size},
      params,
      false);
  float sum = 0;
  for (idx_t i = place.thread_index; i < params.chunks; i += place.threads) {
    sum += partials[position.z * params.chunks + i];
  }
  share.store(row_sum(sum, scratch, place));
}

// Grid as log_softmax_backward_partial's.
template <typename T, typename idx_t>
[[kernel, max_total_threads_per_threadgroup(1024)]] void
log_softmax_backward_finalize(
    device const T* grad [[buffer(0)]],
    device const T* output [[buffer(1)]],
    device const float* partials [[buffer(2)]],
    device T* grad_input [[buffer(3)]],
    constant LogSoftmaxBackwardParams<idx_t>& params [[buffer(4)]],
    uint3 position [[thread_position_in_grid]],
    uint3 grid [[threads_per_grid]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float scratch[simdgroup_size];
  const Tensors<T> tensors = {grad, output, grad_input};
  const Place place = {position.x, grid.x, simdgroup, lane};
  if (params.vectors) {
    finalize_chunk<Vector<T>>(
        tensors, partials, params, position, place, scratch);
  } else {
    finalize_chunk<Scalar<T>>(
        tensors, partials, params, position, place, scratch);
  }
}

// ---- a reduced dimension that is not the innermost ----

constant constexpr uint column_scratch = LOG_SOFTMAX_MAX_COLUMNS *
    LOG_SOFTMAX_BACKWARD_COLUMN_THREADS / simdgroup_size;

// Sums over the threads with the same local.x.
template <unsigned ROWS>
static inline void column_sums(
    thread float (&sums)[ROWS],
    threadgroup float (&scratch)[column_scratch],
    uint2 local,
    uint2 group) {
  const uint threads = group.x * group.y;
  for (uint bit = group.x; bit < min(threads, simdgroup_size); bit *= 2) {
#pragma unroll
    for (unsigned row = 0; row < ROWS; ++row) {
      sums[row] += simd_shuffle_xor(sums[row], bit);
    }
  }
  if (group.y == 1 || threads <= simdgroup_size) {
    return;
  }
  const uint columns = group.x * ROWS;
  const uint thread_index = local.y * group.x + local.x;
  if (thread_index % simdgroup_size < group.x) {
    const uint simdgroup = thread_index / simdgroup_size;
#pragma unroll
    for (unsigned row = 0; row < ROWS; ++row) {
      scratch[simdgroup * columns + local.x * ROWS + row] = sums[row];
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
  for (unsigned row = 0; row < ROWS; ++row) {
    sums[row] = 0;
  }
  const uint end = threads / simdgroup_size * columns;
  for (uint at = local.x * ROWS; at < end; at += columns) {
#pragma unroll
    for (unsigned row = 0; row < ROWS; ++row) {
      sums[row] += scratch[at + row];
    }
  }
}

template <typename U>
using ColumnHeld = Held<
    U,
    LOG_SOFTMAX_BACKWARD_COLUMN_VECTORS,
    LOG_SOFTMAX_BACKWARD_COLUMN_OUTPUTS,
    true>;

template <typename U, typename T, typename idx_t>
static inline void differentiate_columns(
    Tensors<T> tensors,
    constant LogSoftmaxBackwardParams<idx_t>& params,
    idx_t first_row,
    uint2 local,
    uint2 group,
    threadgroup float (&scratch)[column_scratch]) {
  // The grid is padded to whole threadgroups: a padding row has no elements.
  const bool padding = first_row >= params.rows;
  constant array<idx_t, LOG_SOFTMAX_BACKWARD_TENSORS>& strides =
      params.dim_strides;
  Share<T, U, U::size, ColumnHeld<U>, idx_t> share;
  share.tensors = tensors.at_row(padding ? idx_t(0) : first_row, params);
  share.grad_steps = {strides[LOG_SOFTMAX_BACKWARD_GRAD], 0, true};
  share.output_steps = {strides[LOG_SOFTMAX_BACKWARD_OUTPUT], 0, true};
  share.grad_input_steps = {strides[LOG_SOFTMAX_BACKWARD_GRAD_INPUT], 0, true};
  share.zero = opaque_zeros(params).x;
  share.begin({local.y, group.y, padding ? idx_t(0) : params.dim_size});

  share.load_outputs(share.last());
  share.load_grads(share.walk);
  float sums[U::size] = {};
  share.add_grads(sums);
  column_sums(sums, scratch, local, group);
  share.store(sums);
}

// Grid: (rows in units, slices, rows past the x axis' limit). A threadgroup
// takes group.x units of neighbouring rows, a power of two; group.y threads
// share each of them. They are a power of two, or fill whole simdgroups.
template <typename T, typename idx_t>
[[kernel, max_total_threads_per_threadgroup(512)]] void log_softmax_backward(
    device const T* grad [[buffer(0)]],
    device const T* output [[buffer(1)]],
    device T* grad_input [[buffer(2)]],
    constant LogSoftmaxBackwardParams<idx_t>& params [[buffer(3)]],
    uint3 position [[thread_position_in_grid]],
    uint3 grid [[threads_per_grid]],
    uint3 local [[thread_position_in_threadgroup]],
    uint3 group [[threads_per_threadgroup]]) {
  threadgroup float scratch[column_scratch];
  const Tensors<T> tensors = {grad, output, grad_input};
  const idx_t unit = position.x + static_cast<idx_t>(grid.x) * position.z;
  if (params.vectors) {
    differentiate_columns<Vector<T>>(
        tensors, params, unit * Vector<T>::size, local.xy, group.xy, scratch);
  } else {
    differentiate_columns<Scalar<T>>(
        tensors, params, unit, local.xy, group.xy, scratch);
  }
}

#define REGISTER_KERNEL(KERNEL, T, IDX, ID)         \
  template [[host_name(#KERNEL "_" ID)]] [[kernel]] \
  decltype(KERNEL<T, IDX>) KERNEL<T, IDX>

#define REGISTER_LOG_SOFTMAX_BACKWARD(T, IDX, ID)             \
  REGISTER_KERNEL(log_softmax_backward_row, T, IDX, ID);      \
  REGISTER_KERNEL(log_softmax_backward_long_row, T, IDX, ID); \
  REGISTER_KERNEL(log_softmax_backward_partial, T, IDX, ID);  \
  REGISTER_KERNEL(log_softmax_backward_finalize, T, IDX, ID); \
  REGISTER_KERNEL(log_softmax_backward, T, IDX, ID)

REGISTER_LOG_SOFTMAX_BACKWARD(float, uint, "float_u32");
REGISTER_LOG_SOFTMAX_BACKWARD(float, ulong, "float_u64");
REGISTER_LOG_SOFTMAX_BACKWARD(half, uint, "half_u32");
REGISTER_LOG_SOFTMAX_BACKWARD(half, ulong, "half_u64");
REGISTER_LOG_SOFTMAX_BACKWARD(bfloat, uint, "bfloat_u32");
REGISTER_LOG_SOFTMAX_BACKWARD(bfloat, ulong, "bfloat_u64");
