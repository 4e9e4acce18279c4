#include <ATen/native/mps/kernels/LogSoftmaxUnits.h>
#include <c10/metal/reduction_utils.h>
#include <c10/metal/utils.h>
#include <metal_stdlib>

// ---- sums of exponentials ----

// Of no values. Not -inf, so that values which are all -inf add exp(-inf), not
// exp(-inf - -inf). A maximum of +inf makes the sum NaN, as on the CPU. max()
// may lose a NaN, the sum never does.
constant constexpr LogSumExp empty_sum = {-FLT_MAX, 0};

static inline LogSumExp rescale(LogSumExp value, float maximum) {
  return {maximum, value.sum * precise::exp(value.maximum - maximum)};
}

static inline LogSumExp combine(LogSumExp a, LogSumExp b) {
  const float maximum = max(a.maximum, b.maximum);
  return {maximum, rescale(a, maximum).sum + rescale(b, maximum).sum};
}

// Over the lanes of a simdgroup.
static inline LogSumExp simd_combine(LogSumExp value) {
  value = rescale(value, simd_max(value.maximum));
  return {value.maximum, simd_sum(value.sum)};
}

// Over the lanes whose numbers differ in the bits from `first` up to, but not
// including, `end`; both are powers of two. All rows take each step together,
// to wait for one another's shuffles.
template <unsigned ROWS>
static inline void simd_combine(
    thread LogSumExp (&sums)[ROWS],
    uint first,
    uint end) {
  float maximum[ROWS];
#pragma unroll
  for (unsigned row = 0; row < ROWS; ++row) {
    maximum[row] = sums[row].maximum;
  }
  for (uint bit = first; bit < end; bit *= 2) {
#pragma unroll
    for (unsigned row = 0; row < ROWS; ++row) {
      maximum[row] = max(maximum[row], simd_shuffle_xor(maximum[row], bit));
    }
  }
#pragma unroll
  for (unsigned row = 0; row < ROWS; ++row) {
    sums[row] = rescale(sums[row], maximum[row]);
  }
  for (uint bit = first; bit < end; bit *= 2) {
#pragma unroll
    for (unsigned row = 0; row < ROWS; ++row) {
      sums[row].sum += simd_shuffle_xor(sums[row].sum, bit);
    }
  }
}

// A row's maximum and the logarithm of its sum.
static inline LogSumExp take_log(LogSumExp total) {
  return {total.maximum, precise::log(total.sum)};
}

// A row of nothing but -inf becomes NaN, as on the CPU.
static inline float normalize(float value, LogSumExp log) {
  return (value - log.maximum) - log.sum;
}

// ---- a thread's share of a row, or of neighbouring rows ----

// Value i of each unit belongs to row i % ROWS.
template <typename T, unsigned ROWS, unsigned N, typename U>
static inline void reduce(
    thread LogSumExp (&sums)[ROWS],
    thread const U (&units)[N],
    uint zero) {
  float values[U::size];
#pragma unroll
  for (unsigned row = 0; row < ROWS; ++row) {
    sums[row] = empty_sum;
  }
#pragma unroll
  for (unsigned n = 0; n < N; ++n) {
    units[n].unpack(values);
#pragma unroll
    for (unsigned i = 0; i < U::size; ++i) {
      const unsigned row = i % ROWS;
      sums[row].maximum = max(sums[row].maximum, values[i]);
    }
  }
#pragma unroll
  for (unsigned n = 0; n < N; ++n) {
    units[n].packed(zero).unpack(values);
#pragma unroll
    for (unsigned i = 0; i < U::size; ++i) {
      const unsigned row = i % ROWS;
      sums[row].sum += exponential<T>(values[i] - sums[row].maximum);
    }
  }
}

template <unsigned ROWS, typename U>
static inline void normalize(
    thread U& unit,
    thread const LogSumExp (&logs)[ROWS],
    uint zero) {
  float values[U::size];
  unit.packed(zero).unpack(values);
#pragma unroll
  for (unsigned i = 0; i < U::size; ++i) {
    values[i] = normalize(values[i], logs[i % ROWS]);
  }
  unit = U::pack(values);
}

// Units are read in batches of HELD. The last batch stays in registers from the
// read to the write. Those ahead of it, if REREADS allows any, are read again,
// the last one first: it is the likeliest to be in a cache still.
template <
    typename T,
    typename U,
    unsigned ROWS,
    unsigned HELD,
    bool REREADS,
    typename idx_t>
struct Share {
  device const T* input; // the first unit of the row
  idx_t input_step; // elements from unit to unit
  device T* output;
  idx_t output_step;
  idx_t output_stride; // elements from value to value, if not `whole`
  bool whole; // whether a unit is stored at once
  Walk<idx_t> walk; // the batch that is held
  idx_t batches;
  uint2 zeros; // see Vector::packed
  U held[HELD];

  // All but the first batch are full.
  void begin(Walk<idx_t> units) {
    walk = units;
    batches = 1;
    if (REREADS) {
      const idx_t count = (units.end + units.step - 1) / units.step;
      batches = max((count + HELD - 1) / HELD, idx_t(1));
      walk = walk.back(batches * HELD - count);
    }
  }

  void load() {
    const T absent = static_cast<T>(-INFINITY); // adds nothing to a sum
#pragma unroll
    for (unsigned n = 0; n < HELD; ++n) {
      held[n] = U::filled(absent);
      if (walk.has(n)) {
        held[n] =
            *reinterpret_cast<device const U*>(input + walk.at(n) * input_step);
      }
    }
  }

  void load_next() {
    walk = walk.skip(HELD);
    load();
  }

  void load_previous() {
    walk = walk.back(HELD);
    load();
  }

  void accumulate(thread LogSumExp (&sums)[ROWS]) {
    reduce<T>(sums, held, zeros.x);
    for (idx_t batch = 1; REREADS && batch < batches; ++batch) {
      LogSumExp further[ROWS];
      load_next();
      reduce<T>(further, held, zeros.x);
#pragma unroll
      for (unsigned row = 0; row < ROWS; ++row) {
        sums[row] = combine(sums[row], further[row]);
      }
    }
  }

  void store_held(thread const LogSumExp (&logs)[ROWS]) {
#pragma unroll
    for (unsigned n = 0; n < HELD; ++n) {
      if (walk.has(n)) {
        normalize(held[n], logs, zeros.y);
        store_unit(
            held[n], output + walk.at(n) * output_step, output_stride, whole);
      }
    }
  }

  void store(thread const LogSumExp (&logs)[ROWS]) {
    store_held(logs);
    for (idx_t batch = 1; REREADS && batch < batches; ++batch) {
      load_previous();
      store_held(logs);
    }
  }
};

// Of one row, or of a chunk of it. What lies ahead of the first place where a
// vector may begin, and behind the last whole vector, is one value for each of
// the first threads.
template <typename T, typename U, unsigned HELD, bool REREADS, typename idx_t>
struct RowShare {
  Share<T, U, 1, HELD, REREADS, idx_t> units;
  bool has_edge;
  device const T* edge_input;
  device T* edge_output;
  float edge;

  RowShare(
      device const T* input,
      idx_t input_stride,
      device T* output,
      idx_t output_stride,
      Walk<idx_t> elements,
      uint2 zeros) {
    const auto parts = RowParts<U, idx_t>::of(input, elements.end);
    device T* body = output + parts.head * output_stride;
    units.input = input + parts.head * input_stride;
    units.input_step = U::size * input_stride;
    units.output = body;
    units.output_step = U::size * output_stride;
    units.output_stride = output_stride;
    units.whole = U::size == 1 ||
        (output_stride == 1 && elements_to_alignment<T>(body) == 0);
    units.zeros = zeros;
    units.begin({elements.first, elements.step, parts.count});

    const idx_t at = parts.edge(elements.first);
    has_edge = U::size > 1 && at < elements.end;
    edge_input = input + at * input_stride;
    edge_output = output + at * output_stride;
  }

  void skip_to_last() {
    units.walk = units.walk.skip((units.batches - 1) * HELD);
  }

  void load() {
    units.load();
    if (has_edge) {
      edge = static_cast<float>(*edge_input);
    }
  }

  LogSumExp accumulate() {
    LogSumExp sums[1];
    units.accumulate(sums);
    return has_edge ? combine(sums[0], {edge, 1}) : sums[0];
  }

  void store(LogSumExp total) {
    const LogSumExp logs[1] = {take_log(total)};
    units.store(logs);
    if (has_edge) {
      *edge_output = static_cast<T>(normalize(edge, logs[0]));
    }
  }
};

// Combines over the threads of a row, neighbours all: a power of two of one
// simdgroup's lanes, or all simdgroups of the threadgroup. Used once per
// kernel: `scratch` is not safe to write again without another barrier.
static inline LogSumExp row_combine(
    LogSumExp value,
    threadgroup LogSumExp (&scratch)[simdgroup_size],
    Place place) {
  if (place.threads < simdgroup_size) {
    LogSumExp sums[1] = {value};
    simd_combine(sums, 1, place.threads);
    return sums[0];
  }
  value = simd_combine(value);
  if (place.threads == simdgroup_size) {
    return value;
  }
  if (place.lane == 0) {
    scratch[place.simdgroup] = value;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const bool exists = place.lane < place.threads / simdgroup_size;
  value = exists ? scratch[place.lane] : empty_sum;
  return simd_combine(value);
}

template <typename U, unsigned HELD, bool REREADS, typename T, typename idx_t>
static inline void reduce_row(
    device const T* input,
    device T* output,
    constant LogSoftmaxParams<idx_t>& params,
    idx_t row,
    Place place,
    threadgroup LogSumExp (&scratch)[simdgroup_size]) {
  const auto offsets = row_offsets(row, params);
  RowShare<T, U, HELD, REREADS, idx_t> share(
      input + offsets[LOG_SOFTMAX_INPUT],
      params.dim_strides[LOG_SOFTMAX_INPUT],
      output + offsets[LOG_SOFTMAX_OUTPUT],
      params.dim_strides[LOG_SOFTMAX_OUTPUT],
      {place.thread_index, place.threads, params.dim_size},
      opaque_zeros(params));
  share.load();
  share.store(row_combine(share.accumulate(), scratch, place));
}

// Of short rows that come to a quarter of what a thread holds, no more is
// computed: a row of few that leave cores idle ends as soon as its threads do.
template <typename U, bool LONG, typename T, typename idx_t>
static inline void reduce_row_by_length(
    device const T* input,
    device T* output,
    constant LogSoftmaxParams<idx_t>& params,
    idx_t row,
    Place place,
    threadgroup LogSumExp (&scratch)[simdgroup_size]) {
  constexpr unsigned vectors =
      LONG ? LOG_SOFTMAX_LONG_ROW_VECTORS : LOG_SOFTMAX_ROW_VECTORS;
  constexpr unsigned held = U::size == 1 ? scalars(vectors) : vectors;
  constexpr unsigned few = held / 4;
  if (!LONG && params.dim_size <= place.threads * few * U::size) {
    reduce_row<U, few, false>(input, output, params, row, place, scratch);
  } else {
    reduce_row<U, held, LONG>(input, output, params, row, place, scratch);
  }
}

// Grid: (threads of a row, rows, rows past the y axis' limit). Rows of a
// simdgroup or less share a threadgroup.
template <typename T, typename idx_t, bool LONG>
[[kernel, max_total_threads_per_threadgroup(1024)]] void log_softmax_row(
    device const T* input [[buffer(0)]],
    device T* output [[buffer(1)]],
    constant LogSoftmaxParams<idx_t>& params [[buffer(2)]],
    uint3 position [[thread_position_in_grid]],
    uint3 grid [[threads_per_grid]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup LogSumExp scratch[simdgroup_size];
  const idx_t row = position.y + static_cast<idx_t>(grid.y) * position.z;
  if (row >= params.rows) {
    return;
  }
  const Place place = {position.x, grid.x, simdgroup, lane};
  if (params.vectors) {
    reduce_row_by_length<Vector<T>, LONG>(
        input, output, params, row, place, scratch);
  } else {
    reduce_row_by_length<Scalar<T>, LONG>(
        input, output, params, row, place, scratch);
  }
}

// The thread's share of a chunk of a row.
template <typename U, unsigned HELD, typename T, typename idx_t>
static inline RowShare<T, U, HELD, true, idx_t> chunk_share(
    device const T* input,
    device T* output,
    constant LogSoftmaxParams<idx_t>& params,
    uint3 position,
    uint threads) {
  const auto offsets = row_offsets(idx_t(position.z), params);
  const idx_t begin = position.y * params.chunk_size;
  const idx_t size = min(params.chunk_size, params.dim_size - begin);
  return RowShare<T, U, HELD, true, idx_t>(
      input + offsets[LOG_SOFTMAX_INPUT] +
          begin * params.dim_strides[LOG_SOFTMAX_INPUT],
      params.dim_strides[LOG_SOFTMAX_INPUT],
      output + offsets[LOG_SOFTMAX_OUTPUT] +
          begin * params.dim_strides[LOG_SOFTMAX_OUTPUT],
      params.dim_strides[LOG_SOFTMAX_OUTPUT],
      {position.x, threads, size},
      opaque_zeros(params));
}

template <typename U, unsigned HELD, typename T, typename idx_t>
static inline void reduce_chunk(
    device const T* input,
    device LogSumExp* partials,
    constant LogSoftmaxParams<idx_t>& params,
    uint3 position,
    Place place,
    threadgroup LogSumExp (&scratch)[simdgroup_size]) {
  device T* nowhere = nullptr;
  auto share =
      chunk_share<U, HELD>(input, nowhere, params, position, place.threads);
  share.load();
  const LogSumExp total = row_combine(share.accumulate(), scratch, place);
  if (place.thread_index == 0) {
    partials[position.z * params.chunks + position.y] = total;
  }
}

// Grid: (threads of a chunk, chunks, rows), a threadgroup for each chunk.
// `partials` is rows x chunks.
template <typename T, typename idx_t>
[[kernel, max_total_threads_per_threadgroup(1024)]] void log_softmax_partial(
    device const T* input [[buffer(0)]],
    device LogSumExp* partials [[buffer(1)]],
    constant LogSoftmaxParams<idx_t>& params [[buffer(2)]],
    uint3 position [[thread_position_in_grid]],
    uint3 grid [[threads_per_grid]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup LogSumExp scratch[simdgroup_size];
  const Place place = {position.x, grid.x, simdgroup, lane};
  if (params.vectors) {
    reduce_chunk<Vector<T>, LOG_SOFTMAX_CHUNK_VECTORS>(
        input, partials, params, position, place, scratch);
  } else {
    reduce_chunk<Scalar<T>, scalars(LOG_SOFTMAX_CHUNK_VECTORS)>(
        input, partials, params, position, place, scratch);
  }
}

// Every threadgroup of a row combines the row's partials again, which costs
// less than a third launch. The chunk is loaded ahead, to arrive meanwhile.
template <typename U, unsigned HELD, typename T, typename idx_t>
static inline void finalize_chunk(
    device const T* input,
    device const LogSumExp* partials,
    device T* output,
    constant LogSoftmaxParams<idx_t>& params,
    uint3 position,
    Place place,
    threadgroup LogSumExp (&scratch)[simdgroup_size]) {
  auto share =
      chunk_share<U, HELD>(input, output, params, position, place.threads);
  share.skip_to_last();
  share.load();
  LogSumExp own = empty_sum;
  for (idx_t i = place.thread_index; i < params.chunks; i += place.threads) {
    own = combine(own, partials[position.z * params.chunks + i]);
  }
  share.store(row_combine(own, scratch, place));
}

// Grid as log_softmax_partial's.
template <typename T, typename idx_t>
[[kernel, max_total_threads_per_threadgroup(1024)]] void log_softmax_finalize(
    device const T* input [[buffer(0)]],
    device const LogSumExp* partials [[buffer(1)]],
    device T* output [[buffer(2)]],
    constant LogSoftmaxParams<idx_t>& params [[buffer(3)]],
    uint3 position [[thread_position_in_grid]],
    uint3 grid [[threads_per_grid]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup LogSumExp scratch[simdgroup_size];
  const Place place = {position.x, grid.x, simdgroup, lane};
  if (params.vectors) {
    finalize_chunk<Vector<T>, LOG_SOFTMAX_CHUNK_VECTORS>(
        input, partials, output, params, position, place, scratch);
  } else {
    finalize_chunk<Scalar<T>, scalars(LOG_SOFTMAX_CHUNK_VECTORS)>(
        input, partials, output, params, position, place, scratch);
  }
}

// ---- a reduced dimension that is not the innermost ----

constant constexpr uint column_scratch =
    LOG_SOFTMAX_MAX_COLUMNS * LOG_SOFTMAX_COLUMN_THREADS / simdgroup_size;

template <unsigned ROWS>
static inline void take_logs(thread LogSumExp (&sums)[ROWS]) {
#pragma unroll
  for (unsigned row = 0; row < ROWS; ++row) {
    sums[row] = take_log(sums[row]);
  }
}

// Combines over the threads with the same local.x, and takes the logarithms.
template <unsigned ROWS>
static inline void column_combine(
    thread LogSumExp (&sums)[ROWS],
    threadgroup LogSumExp (&scratch)[column_scratch],
    uint2 local,
    uint2 group) {
  if (group.y == 1) {
    take_logs(sums);
    return;
  }
  const uint threads = group.x * group.y;
  const uint thread_index = local.y * group.x + local.x;
  simd_combine(sums, group.x, min(threads, simdgroup_size));
  if (threads <= simdgroup_size) {
    take_logs(sums);
    return;
  }
  const uint columns = group.x * ROWS;
  if (thread_index % simdgroup_size < group.x) {
    const uint simdgroup = thread_index / simdgroup_size;
#pragma unroll
    for (unsigned row = 0; row < ROWS; ++row) {
      scratch[simdgroup * columns + local.x * ROWS + row] = sums[row];
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (thread_index < columns) {
    const uint end = threads / simdgroup_size * columns;
    float maximum = empty_sum.maximum;
    for (uint at = thread_index; at < end; at += columns) {
      maximum = max(maximum, scratch[at].maximum);
    }
    float sum = 0;
    for (uint at = thread_index; at < end; at += columns) {
      sum += rescale(scratch[at], maximum).sum;
    }
    scratch[thread_index] = take_log({maximum, sum});
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
  for (unsigned row = 0; row < ROWS; ++row) {
    sums[row] = scratch[local.x * ROWS + row];
  }
}

template <typename U, unsigned HELD, bool REREADS, typename T, typename idx_t>
static inline void reduce_columns(
    device const T* input,
    device T* output,
    constant LogSoftmaxParams<idx_t>& params,
    idx_t first_row,
    uint2 local,
    uint2 group,
    threadgroup LogSumExp (&scratch)[column_scratch]) {
  // The grid is padded to whole threadgroups: a padding row has no elements.
  const bool padding = first_row >= params.rows;
  const auto offsets = row_offsets(padding ? idx_t(0) : first_row, params);
  Share<T, U, U::size, HELD, REREADS, idx_t> share;
  share.input = input + offsets[LOG_SOFTMAX_INPUT];
  share.input_step = params.dim_strides[LOG_SOFTMAX_INPUT];
  share.output = output + offsets[LOG_SOFTMAX_OUTPUT];
  share.output_step = params.dim_strides[LOG_SOFTMAX_OUTPUT];
  share.output_stride = 0;
  share.whole = true;
  share.zeros = opaque_zeros(params);
  share.begin({local.y, group.y, padding ? idx_t(0) : params.dim_size});

  share.load();
  LogSumExp sums[U::size];
  share.accumulate(sums);
  column_combine(sums, scratch, local, group);
  share.store(sums);
}

// Grid: (rows in units, slices, rows past the x axis' limit). A threadgroup
// takes group.x units of neighbouring rows, a power of two; group.y threads
// share each of them. They are a power of two, or fill whole simdgroups.
template <typename T, typename idx_t, bool REREADS>
[[kernel, max_total_threads_per_threadgroup(512)]] void log_softmax(
    device const T* input [[buffer(0)]],
    device T* output [[buffer(1)]],
    constant LogSoftmaxParams<idx_t>& params [[buffer(2)]],
    uint3 position [[thread_position_in_grid]],
    uint3 grid [[threads_per_grid]],
    uint3 local [[thread_position_in_threadgroup]],
    uint3 group [[threads_per_threadgroup]]) {
  threadgroup LogSumExp scratch[column_scratch];
  const idx_t unit = position.x + static_cast<idx_t>(grid.x) * position.z;
  if (params.vectors) {
    reduce_columns<Vector<T>, LOG_SOFTMAX_COLUMN_VECTORS, REREADS>(
        input,
        output,
        params,
        unit * Vector<T>::size,
        local.xy,
        group.xy,
        scratch);
  } else {
    reduce_columns<Scalar<T>, scalars(LOG_SOFTMAX_COLUMN_VECTORS), REREADS>(
        input, output, params, unit, local.xy, group.xy, scratch);
  }
}

// ---- rows along memory in the input, side by side in the output ----

// One unit of each thread at a time passes through threadgroup memory: values
// of the reduced dimension by rows. Units of neighbouring rows change places,
// so that threads which put units of one row, or take units of neighbouring
// rows, use different banks.
template <typename T, typename U, typename idx_t>
struct Transpose {
  threadgroup T* put; // the first value of the thread's unit
  uint put_step; // from value to value
  threadgroup const U* take; // a value of as many rows
  device T* output; // of what is taken
  idx_t output_stride;
  idx_t at; // which value that is, of those that are put together
  idx_t size; // of the rows that exist, else 0

  // `first_unit` is that of the row's first thread.
  void store(U unit, idx_t first_unit) const {
    float values[U::size];
    unit.unpack(values);
#pragma unroll
    for (unsigned i = 0; i < U::size; ++i) {
      put[i * put_step] = static_cast<T>(values[i]);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const idx_t value = at + first_unit * U::size;
    if (value < size) {
      *reinterpret_cast<device U*>(output + value * output_stride) = *take;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
};

// `group` is (threads of a row, rows), both powers of two.
template <typename U, typename T, typename idx_t>
static inline Transpose<T, U, idx_t> make_transpose(
    device T* output,
    constant LogSoftmaxParams<idx_t>& params,
    idx_t first_row,
    uint2 local,
    uint2 group,
    threadgroup T* scratch) {
  const uint row_units = group.y / U::size;
  const uint thread_index = local.y * group.x + local.x;
  const uint value = thread_index / row_units;
  const uint unit = thread_index % row_units;
  const uint put_unit = local.y / U::size ^ (local.x & (row_units - 1));
  const uint take_unit = unit ^ (value / U::size & (row_units - 1));
  const idx_t row = first_row + unit * U::size;
  const bool exists = row < params.rows;
  return {
      scratch + local.x * U::size * group.y + put_unit * U::size +
          local.y % U::size,
      group.y,
      reinterpret_cast<threadgroup const U*>(
          scratch + value * group.y + take_unit * U::size),
      output + row_offsets(exists ? row : idx_t(0), params)[LOG_SOFTMAX_OUTPUT],
      params.dim_strides[LOG_SOFTMAX_OUTPUT],
      value,
      exists ? params.dim_size : idx_t(0)};
}

template <typename U, unsigned HELD, typename T, typename idx_t>
static inline void transpose_rows(
    device const T* input,
    device T* output,
    constant LogSoftmaxParams<idx_t>& params,
    idx_t first_row,
    uint2 local,
    uint2 group,
    threadgroup T* scratch) {
  // The grid is padded to whole threadgroups: a padding row has no elements.
  const idx_t row = first_row + local.y;
  const bool padding = row >= params.rows;
  const idx_t units = params.dim_size / U::size;
  Share<T, U, 1, HELD, true, idx_t> share;
  share.input =
      input + row_offsets(padding ? idx_t(0) : row, params)[LOG_SOFTMAX_INPUT];
  share.input_step = U::size * params.dim_strides[LOG_SOFTMAX_INPUT];
  share.zeros = opaque_zeros(params);
  share.begin({local.x, group.x, units});
  share.walk.end = padding ? idx_t(0) : units;

  share.load();
  LogSumExp sums[1];
  share.accumulate(sums);
  simd_combine(sums, 1, group.x);
  sums[0] = take_log(sums[0]);

  const auto transpose =
      make_transpose<U>(output, params, first_row, local, group, scratch);
  for (idx_t batch = share.batches;; share.load_previous()) {
#pragma unroll
    for (unsigned n = 0; n < HELD; ++n) {
      const idx_t first_unit = share.walk.at(n) - local.x;
      if (first_unit < units) {
        normalize(share.held[n], sums, share.zeros.y);
        transpose.store(share.held[n], first_unit);
      }
    }
    if (--batch == 0) {
      return;
    }
  }
}

// Grid: (threads of a row, rows, rows past the y axis' limit). A threadgroup
// takes as many neighbouring rows as make up a cache line of the output.
template <typename T, typename idx_t>
[[kernel, max_total_threads_per_threadgroup(1024)]] void log_softmax_transpose(
    device const T* input [[buffer(0)]],
    device T* output [[buffer(1)]],
    constant LogSoftmaxParams<idx_t>& params [[buffer(2)]],
    uint3 position [[thread_position_in_grid]],
    uint3 grid [[threads_per_grid]],
    uint3 local [[thread_position_in_threadgroup]],
    uint3 group [[threads_per_threadgroup]]) {
  threadgroup Vector<T> scratch[LOG_SOFTMAX_TRANSPOSE_THREADS];
  threadgroup T* values = reinterpret_cast<threadgroup T*>(scratch);
  const idx_t first_row =
      position.y - local.y + static_cast<idx_t>(grid.y) * position.z;
  if (params.vectors) {
    transpose_rows<Vector<T>, LOG_SOFTMAX_TRANSPOSE_VECTORS>(
        input, output, params, first_row, local.xy, group.xy, values);
  } else {
    transpose_rows<Scalar<T>, scalars(LOG_SOFTMAX_TRANSPOSE_VECTORS)>(
        input, output, params, first_row, local.xy, group.xy, values);
  }
}

#define REGISTER_KERNEL(NAME, ...) \
  template [[host_name(NAME)]] [[kernel]] decltype(__VA_ARGS__) __VA_ARGS__

#define REGISTER_LOG_SOFTMAX(T, IDX, ID)                                      \
  REGISTER_KERNEL("log_softmax_row_" ID, log_softmax_row<T, IDX, false>);     \
  REGISTER_KERNEL("log_softmax_long_row_" ID, log_softmax_row<T, IDX, true>); \
  REGISTER_KERNEL("log_softmax_partial_" ID, log_softmax_partial<T, IDX>);    \
  REGISTER_KERNEL("log_softmax_finalize_" ID, log_softmax_finalize<T, IDX>);  \
  REGISTER_KERNEL("log_softmax_" ID, log_softmax<T, IDX, false>);             \
  REGISTER_KERNEL("log_softmax_long_" ID, log_softmax<T, IDX, true>);         \
  REGISTER_KERNEL("log_softmax_transpose_" ID, log_softmax_transpose<T, IDX>)

REGISTER_LOG_SOFTMAX(float, uint, "float_u32");
REGISTER_LOG_SOFTMAX(float, ulong, "float_u64");
REGISTER_LOG_SOFTMAX(half, uint, "half_u32");
REGISTER_LOG_SOFTMAX(half, ulong, "half_u64");
REGISTER_LOG_SOFTMAX(bfloat, uint, "bfloat_u32");
REGISTER_LOG_SOFTMAX(bfloat, ulong, "bfloat_u64");
