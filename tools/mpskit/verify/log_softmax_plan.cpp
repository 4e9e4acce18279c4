// LogSoftmaxPlan.h behind a C function, so that Python asks the code that ships.
#include <ATen/native/mps/operations/LogSoftmaxPlan.h>

#include <cstring>

namespace plan = at::native::mps::log_softmax;

namespace {

using WideParams = LogSoftmaxParams<uint64_t>;

constexpr uint32_t kAutomatic = ~uint32_t{0};
constexpr size_t kMaxLaunches = 2;
constexpr size_t kMaxName = 64;

enum Status : uint32_t { kPlanned, kWrongKernel, kIndexTooNarrow, kTooManyDims };

} // namespace

extern "C" {

struct Request {
  const int64_t* sizes;
  const int64_t* input_strides;
  const int64_t* output_strides;
  int64_t ndim;
  int64_t dim;
  uint64_t element_size;
  uint64_t input_offset; // bytes
  uint64_t output_offset;
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

uint32_t mpskit_plan_log_softmax(const Request* request, Response* response) {
  const auto problem = plan::make_problem(
      request->sizes,
      request->input_strides,
      request->output_strides,
      request->ndim,
      request->dim,
      request->element_size,
      request->input_offset,
      request->output_offset);
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
  response->partials_bytes = made.partials * sizeof(LogSumExp);
  response->params = made.params;
  if (use_u32) {
    const auto narrow = plan::narrow(made.params);
    response->packed_size = sizeof(narrow);
    std::memcpy(response->packed_params, &narrow, sizeof(narrow));
  } else {
    response->packed_size = sizeof(made.params);
    std::memcpy(response->packed_params, &made.params, sizeof(made.params));
  }
  response->launch_count = made.launches.size();
  for (size_t i = 0; i < made.launches.size(); ++i) {
    auto& record = response->launches[i];
    made.launches[i].kernel.copy(record.kernel, kMaxName - 1);
    std::copy_n(made.launches[i].grid.data(), 3, record.grid);
    std::copy_n(made.launches[i].group.data(), 3, record.group);
  }
  return kPlanned;
}

} // extern "C"
