// A plan header behind a C function, so that Python asks the code that ships.
// plan_header.py defines PLAN_HEADER, PLAN_NAMESPACE and PLAN_ARGUMENTS.
#include PLAN_HEADER

#include <algorithm>
#include <cstring>

namespace plan = PLAN_NAMESPACE;

namespace {

constexpr uint32_t kAutomatic = ~uint32_t{0};
constexpr size_t kMaxName = 96;
constexpr size_t kMaxParams = 4096;

enum Status : uint32_t { kPlanned, kWrongKernel, kIndexTooNarrow, kNameTooLong };

} // namespace

extern "C" {

struct Request {
  const int64_t* sizes;
  const int64_t* strides; // ndim of each argument, one argument after another
  int64_t ndim;
  uint64_t reduced; // a bit for each dimension
  const char* name; // of the op
  const char* dtype;
  uint32_t kernel; // of plan::Kernel, or kAutomatic
  uint32_t use_u32; // 0, 1, or kAutomatic
};

struct Response {
  char kernel[kMaxName];
  uint64_t grid[3];
  uint64_t group[3];
  uint32_t branch; // of plan::Kernel
  uint32_t use_u32;
  unsigned char params[kMaxParams];
  uint64_t params_size;
};

} // extern "C"

namespace {

// Only a plan of reductions asks for the dimensions that are reduced.
template <typename Strides>
auto problem_of(const Request& request, const Strides& strides) {
  if constexpr (requires { plan::make_problem(request.sizes, strides, request.ndim, request.reduced); }) {
    return plan::make_problem(request.sizes, strides, request.ndim, request.reduced);
  } else {
    return plan::make_problem(request.sizes, strides, request.ndim);
  }
}

// Only a plan that serves several ops asks for the op's name.
template <typename Problem>
plan::Plan plan_of(const Request& request, const Problem& problem, plan::Kernel kernel, bool use_u32) {
  if constexpr (requires { plan::make_plan(problem, request.name, request.dtype, kernel, use_u32); }) {
    return plan::make_plan(problem, request.name, request.dtype, kernel, use_u32);
  } else {
    return plan::make_plan(problem, request.dtype, kernel, use_u32);
  }
}

// Kernels that are right for every problem need no such question.
template <typename Problem>
bool is_right(plan::Kernel kernel, const Problem& problem) {
  if constexpr (requires { can_use(kernel, problem); }) {
    return can_use(kernel, problem);
  } else {
    return true;
  }
}

template <typename idx_t, typename Problem>
void pack_params(const Problem& problem, Response& response) {
  const auto params = plan::template make_params<idx_t>(problem);
  static_assert(sizeof(params) <= kMaxParams);
  std::memcpy(response.params, &params, sizeof(params));
  response.params_size = sizeof(params);
}

} // namespace

extern "C" uint32_t mpskit_plan(const Request* request, Response* response) {
  std::array<const int64_t*, PLAN_ARGUMENTS> strides;
  for (size_t i = 0; i < strides.size(); ++i) {
    strides[i] = request->strides + i * request->ndim;
  }
  const auto problem = problem_of(*request, strides);
  const auto kernel = request->kernel == kAutomatic
      ? plan::choose_kernel(problem)
      : static_cast<plan::Kernel>(request->kernel);
  const bool fits_u32 = plan::can_use_u32(problem);
  const bool use_u32 = request->use_u32 == kAutomatic ? fits_u32 : request->use_u32 == 1;
  if (!is_right(kernel, problem)) {
    return kWrongKernel;
  }
  if (use_u32 && !fits_u32) {
    return kIndexTooNarrow;
  }
  const auto made = plan_of(*request, problem, kernel, use_u32);
  if (made.launch.kernel.size() >= kMaxName) {
    return kNameTooLong;
  }
  *response = {};
  if (use_u32) {
    pack_params<uint32_t>(problem, *response);
  } else {
    pack_params<uint64_t>(problem, *response);
  }
  std::copy(made.launch.kernel.begin(), made.launch.kernel.end(), response->kernel);
  std::copy(made.launch.grid.begin(), made.launch.grid.end(), response->grid);
  std::copy(made.launch.group.begin(), made.launch.group.end(), response->group);
  response->branch = static_cast<uint32_t>(kernel);
  response->use_u32 = use_u32;
  return kPlanned;
}
