// A plan of log_softmax's kind behind a C function, so that Python asks the
// code that ships. Includers have `plan`, the plan's namespace, TENSORS, the
// number of its tensors, and Partial, what its launches exchange.

#include <cstring>
#include <utility>

namespace {

using WideParams = decltype(plan::Plan::params);

constexpr uint32_t kAutomatic = ~uint32_t{0};
constexpr size_t kMaxLaunches = 2;
constexpr size_t kMaxName = 64;

enum Status : uint32_t { kPlanned, kWrongKernel, kIndexTooNarrow, kTooManyDims };

} // namespace

extern "C" {

struct Request {
  const int64_t* sizes;
  const int64_t* strides[TENSORS]; // in the order of make_problem's arguments
  uint64_t offsets[TENSORS]; // bytes
  int64_t ndim;
  int64_t dim;
  uint64_t element_size;
  const char* dtype;
  uint64_t cores;
  uint32_t kernel; // of plan::Kernel, or kAutomatic
  uint32_t use_u32; // 0, 1, or kAutomatic
};

struct LaunchRecord {
  char kernel[kMaxName];
  uint64_t grid[3];
  uint64_t group[3];
};

struct Response {
  uint32_t kernel;
  uint32_t use_u32;
  uint64_t partials;
  uint64_t partials_bytes;
  WideParams params;
  unsigned char packed_params[sizeof(WideParams)]; // as the kernels take them
  uint64_t packed_size;
  uint64_t launch_count;
  LaunchRecord launches[kMaxLaunches];
};

} // extern "C"

namespace {

template <size_t... TENSOR>
auto problem_of(const Request& request, std::index_sequence<TENSOR...>) {
  return plan::make_problem(
      request.sizes,
      request.strides[TENSOR]...,
      request.ndim,
      request.dim,
      request.element_size,
      request.offsets[TENSOR]...);
}

template <typename Params>
void pack(const Params& params, Response& response) {
  response.packed_size = sizeof(params);
  std::memcpy(response.packed_params, &params, sizeof(params));
}

void record(const plan::Launch& launch, LaunchRecord& record) {
  launch.kernel.copy(record.kernel, kMaxName - 1);
  std::copy_n(launch.grid.data(), 3, record.grid);
  std::copy_n(launch.group.data(), 3, record.group);
}

} // namespace

extern "C" uint32_t mpskit_plan(const Request* request, Response* response) {
  const auto problem = problem_of(*request, std::make_index_sequence<TENSORS>());
  if (problem.rows.size() > c10::metal::max_ndim) {
    return kTooManyDims;
  }
  const auto kernel = request->kernel == kAutomatic
      ? plan::choose_kernel(problem, request->cores)
      : static_cast<plan::Kernel>(request->kernel);
  const bool fits_u32 = plan::can_use_u32(problem);
  const bool use_u32 = request->use_u32 == kAutomatic ? fits_u32 : request->use_u32 == 1;
  if (!plan::can_use(kernel, problem)) {
    return kWrongKernel;
  }
  if (use_u32 && !fits_u32) {
    return kIndexTooNarrow;
  }
  const auto made = plan::make_plan(problem, request->dtype, request->cores, kernel, use_u32);

  *response = {};
  response->kernel = static_cast<uint32_t>(made.kernel);
  response->use_u32 = made.use_u32;
  response->partials = made.partials;
  response->partials_bytes = made.partials * sizeof(Partial);
  response->params = made.params;
  if (use_u32) {
    pack(plan::narrow(made.params), *response);
  } else {
    pack(made.params, *response);
  }
  response->launch_count = made.launches.size();
  for (size_t i = 0; i < made.launches.size(); ++i) {
    record(made.launches[i], response->launches[i]);
  }
  return kPlanned;
}
