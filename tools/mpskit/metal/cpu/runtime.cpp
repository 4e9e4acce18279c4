// Runs kernels on the host: threads of a threadgroup are fibers, simdgroups of 32 wait for each
// other at simdgroup operations, threadgroups are spread over OS threads.
//
// A fiber never moves between OS threads, so a worker's state needs no locks. A thread that
// finishes without waiting leaves its stack to the next one: a kernel without barriers and
// simdgroup operations is a loop on one stack.
#include "abi.h"
#include "faults.h"
#include "fiber.h"
#include "sanitizer/sanitizer.h"
#include "stack.h"
#include "watchdog.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <pthread.h>

using namespace mpskit::abi;

namespace {

constexpr std::size_t threadgroup_memory_limit = 32 * 1024;
constexpr unsigned max_threadgroup_buffers = 31;

struct Simdgroup {
  alignas(64) unsigned char values[simd_width * lane_slot];
  alignas(64) unsigned char shared[lane_slot];
  bool has_shared;
  unsigned active;
};

// One launch, shared by the workers that take threadgroups from it.
struct Launch final : Stoppable {
  const Dispatch* dispatch;
  Uint3 groups;
  std::uint64_t group_count;
  Sanitizer* sanitizer = nullptr;
  std::atomic<std::uint64_t> next{0};
  std::atomic<bool> failed{false};
  std::mutex mutex;
  std::vector<pthread_t> os_threads; // that work for it
  Failure failure = Failure::none;
  std::string message;
  const void* pc = nullptr; // of a fault

  double timeout() const override { return dispatch->timeout; }
  bool interruptible() const override { return dispatch->interruptible; }
  void signal_workers() override {
    std::lock_guard lock(mutex);
    for (pthread_t thread : os_threads) pthread_kill(thread, stop_signal);
  }

  void fail(Failure how, const std::string& what, const void* where = nullptr) {
    std::lock_guard lock(mutex);
    if (!failed.exchange(true)) {
      failure = how;
      message = what;
      pc = where;
    }
  }
};

void copy_operand(void* to, const void* from, unsigned size) {
  if (size == 4) {
    std::memcpy(to, from, 4); // no call
  } else {
    std::memcpy(to, from, size);
  }
}

std::string text_of(Uint3 position) {
  return "(" + std::to_string(position.x) + ", " + std::to_string(position.y) + ", " +
      std::to_string(position.z) + ")";
}

class Worker final : public Interruptible, public Surroundings {
 public:
  Worker() {
    std::memset(memory_, poison, sizeof(memory_));
  }

  void run(Launch& launch);

  Lanes simd_gather(const void* value, unsigned size, const void* address);
  void wait(State state, unsigned flags, const void* address);
  void* threadgroup_memory(const ThreadgroupVariable& variable);
  void at_return(unsigned place, const void* pc);
  template <class F>
  void sanitize(F report);

  [[noreturn]] void run_fibers();
  bool interrupt(int signal, const siginfo_t& info, Context& context) override;
  bool holds_stack(const void* address) const override;
  bool holds_state(const void* address) const override;

  Position position; // of the thread that runs

 private:
  struct Place {
    ThreadgroupVariable variable;
    void* address;
  };
  // What ended a thread from outside, for a message once the handler has returned.
  struct Interruption {
    int signal = 0;
    int code;
    const char* address;
    const char* pc;
    bool in_guard;
  };

  void run_group(std::uint64_t index);
  void reset();
  bool run_simdgroup(unsigned simdgroup);
  bool release_lanes(unsigned first, unsigned end);
  void resume(unsigned fiber);
  bool add_stack();
  void switch_to_thread(unsigned index, void** from);
  void switch_to_scheduler();
  void suspend();
  void describe_thread(unsigned index);
  void* take_memory(const ThreadgroupVariable& variable);
  void take_threadgroup_buffers();
  void refuse_threadgroup_memory(const ThreadgroupVariable& variable, std::size_t needed);
  void explain_interruption();

  Launch* launch_ = nullptr;
  Thread thread_{}; // of the threadgroup that runs; the positions are filled in for each start
  std::vector<Fiber> fibers_ = std::vector<Fiber>(1024);
  Simdgroup simdgroups_[1024 / simd_width];
  std::deque<Stack> stacks_;
  std::vector<void*> idle_stacks_; // stack pointers, each waiting to start a fiber
  unsigned current_ = 0;
  unsigned simdgroup_end_ = 0;
  unsigned count_ = 0;
  void* scheduler_ = nullptr;
  bool abandoned_ = false;
  Sanitizer* sanitizer_ = nullptr;
  void* const* buffers_ = nullptr;

  // Read and written by signal handlers of this OS thread.
  volatile bool in_fiber_ = false;
  volatile bool critical_ = false; // a fiber is inside the runtime, where it must not be ended
  Interruption interruption_;
  void* landing_[64]; // a stack that lasts until the scheduler's is taken up again

  alignas(64) unsigned char memory_[threadgroup_memory_limit];
  std::size_t memory_used_ = 0;
  std::vector<Place> places_;
  void* threadgroup_buffers_[max_threadgroup_buffers];
};

// The worker of this OS thread. It lives as long as the thread: its stacks and fibers are reused.
MPSKIT_FAST_TLS thread_local Worker* own_worker = nullptr;

[[gnu::noinline]] Worker& make_worker() {
  thread_local const std::unique_ptr<Worker> mine = std::make_unique<Worker>();
  own_worker = mine.get();
  return *own_worker;
}

Worker& worker() {
  return own_worker ? *own_worker : make_worker();
}

void fiber_entry() {
  worker().run_fibers();
}

void* prepare_stack(const Stack& stack) {
  // On entry a function finds the stack 16-byte aligned on arm64, and one word below that, where
  // the call left its return address, on x86-64: the switch takes 20 words off, or 6 and one.
  void** words = stack.top() - 4 - (saved_words + saved_words % 2);
  std::fill(words, stack.top(), nullptr);
  words[return_slot] = reinterpret_cast<void*>(&fiber_entry);
  return words;
}

void Worker::run(Launch& launch) {
  SignalStack signal_stack;
  launch_ = &launch;
  sanitizer_ = launch.sanitizer;
  buffers_ = sanitizer_ ? sanitizer_->buffers() : launch.dispatch->buffers;
  interruptible = this;
  {
    std::lock_guard lock(launch.mutex);
    launch.os_threads.push_back(pthread_self());
  }
  while (!launch.failed.load(std::memory_order_relaxed)) {
    const auto index = launch.next.fetch_add(1, std::memory_order_relaxed);
    if (index >= launch.group_count) {
      break;
    }
    run_group(index);
  }
  {
    std::lock_guard lock(launch.mutex);
    auto& threads = launch.os_threads;
    threads.erase(std::find_if(threads.begin(), threads.end(), [](pthread_t thread) {
      return pthread_equal(thread, pthread_self());
    }));
  }
  interruptible = nullptr;
  launch_ = nullptr;
}

void Worker::run_group(std::uint64_t index) {
  const auto& dispatch = *launch_->dispatch;
  const auto groups = launch_->groups;
  const Uint3 group{
      static_cast<unsigned>(index % groups.x),
      static_cast<unsigned>(index / groups.x % groups.y),
      static_cast<unsigned>(index / groups.x / groups.y)};
  const Uint3 full = dispatch.group_size;
  const Uint3 size{
      std::min(full.x, dispatch.threads.x - group.x * full.x),
      std::min(full.y, dispatch.threads.y - group.y * full.y),
      std::min(full.z, dispatch.threads.z - group.z * full.z)};
  count_ = product(size);
  thread_.threadgroup_position_in_grid = group;
  thread_.threads_per_grid = dispatch.threads;
  thread_.threadgroups_per_grid = groups;
  thread_.threads_per_threadgroup = size;
  thread_.dispatch_threads_per_threadgroup = full;
  thread_.simdgroups_per_threadgroup = (count_ + simd_width - 1) / simd_width;
  thread_.dispatch_simdgroups_per_threadgroup = (product(full) + simd_width - 1) / simd_width;
  for (unsigned i = 0; i < count_; ++i) {
    fibers_[i].state = State::unstarted;
  }
  std::memset(memory_, poison, memory_used_);
  memory_used_ = 0;
  places_.clear();
  if (sanitizer_) {
    sanitizer_->start_group(group, size);
  }
  take_threadgroup_buffers();

  bool waiting = !launch_->failed.load();
  while (waiting) {
    waiting = false;
    for (unsigned i = 0; i < thread_.simdgroups_per_threadgroup; ++i) {
      waiting |= run_simdgroup(i);
      if (abandoned_) {
        reset();
        return;
      }
    }
    // Everyone who has not returned is at a barrier.
    if (waiting && sanitizer_) {
      sanitizer_->threadgroup_barrier(fibers_, count_);
    }
    for (unsigned i = 0; i < count_; ++i) {
      if (fibers_[i].state == State::at_barrier) {
        fibers_[i].state = State::running;
      }
    }
  }
}

// Forgets the threads of an abandoned threadgroup: their stacks start anew.
void Worker::reset() {
  abandoned_ = false;
  critical_ = false;
  idle_stacks_.clear();
  for (const Stack& stack : stacks_) {
    idle_stacks_.push_back(prepare_stack(stack));
  }
}

// Runs a simdgroup until its threads have returned or are at a threadgroup barrier; returns
// whether one is.
bool Worker::run_simdgroup(unsigned simdgroup) {
  const unsigned first = simdgroup * simd_width;
  simdgroup_end_ = std::min(first + simd_width, count_);
  do {
    for (unsigned i = first; i < simdgroup_end_; ++i) {
      if (fibers_[i].state == State::unstarted || fibers_[i].state == State::running) {
        resume(i);
        if (abandoned_) {
          return false;
        }
      }
    }
  } while (release_lanes(first, simdgroup_end_));
  return std::any_of(&fibers_[first], &fibers_[0] + simdgroup_end_, [](const Fiber& fiber) {
    return fiber.state == State::at_barrier;
  });
}

// Lets the lanes go on that wait at one simdgroup operation. In divergent flow lanes wait at
// several: the operation that stands first in the program goes first, so that lanes inside a
// branch or loop catch up with those behind it.
bool Worker::release_lanes(unsigned first, unsigned end) {
  const Fiber* chosen = nullptr;
  for (unsigned i = first; i < end; ++i) {
    const Fiber& fiber = fibers_[i];
    const bool waits = fiber.state == State::at_simd_operation ||
        fiber.state == State::at_simd_barrier;
    if (waits && (!chosen || fiber.site < chosen->site)) {
      chosen = &fiber;
    }
  }
  if (!chosen) {
    return false;
  }
  const auto site = chosen->site;
  const bool is_barrier = chosen->state == State::at_simd_barrier;
  const auto size = is_barrier ? 0 : chosen->operand_size;
  Simdgroup& group = simdgroups_[first / simd_width];
  group.active = 0;
  group.has_shared = false;
  for (unsigned i = first; i < end; ++i) {
    Fiber& fiber = fibers_[i];
    const bool waits = fiber.state == State::at_simd_operation ||
        fiber.state == State::at_simd_barrier;
    if (waits && fiber.site == site) {
      copy_operand(group.values + (i - first) * size, fiber.operand, size);
      group.active |= 1u << (i - first);
      fiber.state = State::running;
    }
  }
  if (sanitizer_) {
    sanitizer_->simdgroup_operation(fibers_, first, end, group.active, is_barrier);
  }
  if (group.active != ~0u) {
    for (unsigned lane = 0; lane < simd_width; ++lane) {
      if (!(group.active >> lane & 1)) {
        std::memset(group.values + lane * size, poison, size);
      }
    }
  }
  return true;
}

void Worker::resume(unsigned fiber) {
  if (fibers_[fiber].state == State::unstarted && idle_stacks_.empty() && !add_stack()) {
    abandoned_ = true;
    return;
  }
  critical_ = false;
  in_fiber_ = true;
  switch_to_thread(fiber, &scheduler_);
  in_fiber_ = false;
  if (interruption_.signal) {
    explain_interruption();
  } else if (launch_->stop.load(std::memory_order_relaxed) != Failure::none) {
    interruption_ = {stop_signal, 0, nullptr, nullptr, false};
    explain_interruption();
  }
}

bool Worker::add_stack() {
  const Stack& stack = stacks_.emplace_back();
  if (!stack) {
    launch_->fail(
        Failure::refused,
        "the system gave no memory for the stack of a thread; " + std::to_string(stacks_.size()) +
            " were wanted");
    stacks_.pop_back();
    return false;
  }
  idle_stacks_.push_back(prepare_stack(stack));
  return true;
}

// Leaves the stack that runs, to be taken up again at *from.
void Worker::switch_to_thread(unsigned index, void** from) {
  current_ = index;
  Fiber& next = fibers_[index];
  if (next.state == State::unstarted) {
    next.stack_pointer = idle_stacks_.back();
    idle_stacks_.pop_back();
  }
  if (sanitizer_) {
    sanitizer_->set_thread(index);
  }
  mpskit_switch_stack(from, next.stack_pointer);
}

void Worker::switch_to_scheduler() {
  mpskit_switch_stack(&fibers_[current_].stack_pointer, scheduler_);
}

// Lets the simdgroup's next thread run, if it can: the scheduler would do nothing else.
void Worker::suspend() {
  const unsigned next = current_ + 1;
  const State state = next < simdgroup_end_ ? fibers_[next].state : State::finished;
  if (state == State::running || (state == State::unstarted && !idle_stacks_.empty())) {
    switch_to_thread(next, &fibers_[current_].stack_pointer);
  } else {
    switch_to_scheduler();
  }
  critical_ = false;
}

// The life of a stack: run a thread, then those behind it that have not started, then idle.
void Worker::run_fibers() {
  for (;;) {
    Fiber& fiber = fibers_[current_];
    fiber.state = State::running;
    fiber.returned_pc = nullptr;
    position = {};
    describe_thread(current_);
    launch_->dispatch->kernel->entry(thread_, buffers_, threadgroup_buffers_);
    fibers_[current_].state = State::finished;
    const unsigned next = current_ + 1;
    const State state = next < simdgroup_end_ ? fibers_[next].state : State::finished;
    if (state == State::unstarted) {
      current_ = next;
      if (sanitizer_) {
        sanitizer_->set_thread(current_);
      }
      continue;
    }
    critical_ = true; // until the stack is at rest
    idle_stacks_.push_back(nullptr);
    if (state == State::running) {
      switch_to_thread(next, &idle_stacks_.back());
    } else {
      mpskit_switch_stack(&idle_stacks_.back(), scheduler_);
    }
    critical_ = false;
  }
}

void Worker::describe_thread(unsigned index) {
  const Uint3 size = thread_.threads_per_threadgroup;
  const Uint3 full = thread_.dispatch_threads_per_threadgroup;
  const Uint3 group = thread_.threadgroup_position_in_grid;
  const Uint3 at = index < size.x
      ? Uint3{index, 0, 0}
      : Uint3{index % size.x, index / size.x % size.y, index / size.x / size.y};
  thread_.thread_position_in_threadgroup = at;
  thread_.thread_position_in_grid = {
      group.x * full.x + at.x, group.y * full.y + at.y, group.z * full.z + at.z};
  thread_.thread_index_in_threadgroup = index;
  thread_.thread_index_in_simdgroup = index % simd_width;
  thread_.simdgroup_index_in_threadgroup = index / simd_width;
}

void Worker::wait(State state, unsigned flags, const void* address) {
  Fiber& fiber = fibers_[current_];
  fiber.state = state;
  fiber.barrier_flags = flags;
  fiber.site = {position, address};
  suspend();
  position = fiber.site.position;
}

Lanes Worker::simd_gather(const void* value, unsigned size, const void* address) {
  const unsigned index = current_;
  Fiber& fiber = fibers_[index];
  fiber.operand = value;
  fiber.operand_size = size;
  wait(State::at_simd_operation, 0, address);
  Simdgroup& group = simdgroups_[index / simd_width];
  return {group.values, group.active, index % simd_width, group.shared, &group.has_shared};
}

void* Worker::threadgroup_memory(const ThreadgroupVariable& variable) {
  for (const Place& place : places_) {
    if (place.variable.site == variable.site) {
      return place.address;
    }
  }
  critical_ = true;
  void* address = take_memory(variable);
  if (!address) {
    abandoned_ = true;
    switch_to_scheduler(); // never to return: the launch has failed
  }
  critical_ = false;
  return address;
}

void* Worker::take_memory(const ThreadgroupVariable& variable) {
  const std::size_t alignment = variable.alignment;
  const std::size_t begin = (memory_used_ + alignment - 1) / alignment * alignment;
  const std::size_t end = begin + variable.bytes;
  if (end > sizeof(memory_)) {
    refuse_threadgroup_memory(variable, end);
    return nullptr;
  }
  void* address = sanitizer_ ? sanitizer_->threadgroup_variable(variable) : memory_ + begin;
  if (!address) {
    launch_->fail(Failure::refused, "more variables than the sanitizer can tell apart");
    return nullptr;
  }
  memory_used_ = end;
  places_.push_back({variable, address});
  return address;
}

void Worker::refuse_threadgroup_memory(const ThreadgroupVariable& variable, std::size_t needed) {
  std::string parts;
  for (const Place& place : places_) {
    parts += "'" + std::string(place.variable.name) + "' takes " +
        std::to_string(place.variable.bytes) + ", ";
  }
  launch_->fail(
      Failure::refused,
      "threadgroup memory: " + std::to_string(needed) + " bytes are needed, " +
          std::to_string(sizeof(memory_)) + " is the most that a threadgroup has: " + parts + "'" +
          variable.name + "' " + (parts.empty() ? "takes " : "") + std::to_string(variable.bytes));
}

void Worker::take_threadgroup_buffers() {
  const Dispatch& dispatch = *launch_->dispatch;
  const Kernel& kernel = *dispatch.kernel;
  for (unsigned i = 0; i < dispatch.threadgroup_length_count; ++i) {
    ThreadgroupVariable variable{~i, "", dispatch.threadgroup_lengths[i], 16, 1, {}};
    for (unsigned k = 0; k < kernel.parameter_count; ++k) {
      const Parameter& parameter = kernel.parameters[k];
      if (parameter.kind == ParameterKind::threadgroup && parameter.index == i) {
        variable.name = parameter.name;
        variable.element_bytes = parameter.pointee.size;
      }
    }
    threadgroup_buffers_[i] = take_memory(variable);
  }
}

void Worker::at_return(unsigned place, const void* pc) {
  fibers_[current_].returned = {place, 0};
  fibers_[current_].returned_pc = pc;
}

template <class F>
void Worker::sanitize(F report) {
  critical_ = true;
  report(*sanitizer_);
  critical_ = false;
}

bool Worker::holds_stack(const void* address) const {
  return std::any_of(
      stacks_.begin(), stacks_.end(), [=](const Stack& stack) { return stack.holds(address); });
}

bool Worker::holds_state(const void* address) const {
  return address >= this && address < this + 1;
}

// Called in a signal handler.
bool Worker::interrupt(int signal, const siginfo_t& info, Context& context) {
  const bool is_stop = signal == stop_signal;
  if (!in_fiber_) {
    return is_stop;
  }
  const char* stack = context.stack_pointer();
  const auto any_stack = [&](auto test) {
    return std::any_of(stacks_.begin(), stacks_.end(), test);
  };
  if (is_stop) {
    const char* switching = reinterpret_cast<const char*>(&mpskit_switch_stack);
    const bool in_kernel = launch_->stop.load() != Failure::none && !critical_ &&
        !(context.pc() >= switching && context.pc() < mpskit_switch_stack_end) &&
        any_stack([&](const Stack& mine) { return mine.holds(stack); });
    if (!in_kernel) {
      return true; // the watchdog sends another
    }
  }
  const auto* address = static_cast<const char*>(info.si_addr);
  interruption_ = {signal, info.si_code, is_stop ? nullptr : address, context.pc(), false};
  interruption_.in_guard = any_stack([&](const Stack& mine) {
    return mine.guards(stack) || (!is_stop && mine.guards(address));
  });
  in_fiber_ = false;
  static void* nowhere;
  constexpr int middle = sizeof landing_ / sizeof *landing_ / 2;
  // 16-byte aligned at the call that never happened: one word of return address below that.
  auto* top = reinterpret_cast<void**>(reinterpret_cast<std::uintptr_t>(landing_ + middle) & ~15ul);
  context.switch_stack(top - 1, &nowhere, scheduler_);
  return true;
}

// The code of a fault whose address the processor does not tell.
#if defined(SI_KERNEL)
constexpr int kernel_found_it = SI_KERNEL;
#else
constexpr int kernel_found_it = -1;
#endif

std::string explanation(int signal, int code, const char* address) {
  char text[128];
  switch (signal) {
    case SIGFPE:
      return "an integer division by zero, or one whose result does not fit";
    case SIGILL:
    case SIGTRAP:
      return "it came to code that has no meaning, by undefined behaviour";
    default:
      if (code == kernel_found_it) {
        return "it accessed an address that cannot exist, or a vector at a misaligned one";
      }
      if (reinterpret_cast<std::uintptr_t>(address) < 64 * 1024) {
        std::snprintf(text, sizeof text, "a null pointer was dereferenced (address %p)", address);
      } else {
        std::snprintf(
            text, sizeof text, "it accessed address %p, where there is no memory", address);
      }
      return text;
  }
}

void Worker::explain_interruption() {
  const Interruption what = interruption_;
  interruption_ = {};
  abandoned_ = true;
  describe_thread(current_);
  const std::string where = "thread " + text_of(thread_.thread_position_in_threadgroup) +
      " of threadgroup " + text_of(thread_.threadgroup_position_in_grid);
  if (what.signal == stop_signal) {
    launch_->fail(launch_->stop, where + " was running", what.pc);
    return;
  }
  if (sanitizer_) sanitizer_->faulted();
  const std::string fault = what.in_guard
      ? "the stack overflowed: a thread has " + std::to_string(stack_bytes / 1024) + " KB of it"
      : explanation(what.signal, what.code, what.address);
  launch_->fail(Failure::fault, where + ": " + fault, what.pc);
}

// OS threads that help with launches. They start when they are first needed and then sleep.
class Pool {
 public:
  // Runs a launch on the calling thread and on up to `helpers` others; returns when all are done.
  void run(Launch& launch, unsigned helpers) {
    Job job{launch, helpers};
    {
      std::lock_guard lock(mutex_);
      start_threads(helpers);
      jobs_.push_back(&job);
    }
    wake_.notify_all();
    worker().run(launch);
    std::unique_lock lock(mutex_);
    jobs_.erase(std::find(jobs_.begin(), jobs_.end(), &job));
    done_.wait(lock, [&] { return job.running == 0; });
  }

 private:
  struct Job {
    Launch& launch;
    unsigned wanted;
    unsigned running = 0;
  };

  // Fewer where the system gives no more: a launch's own thread does what nobody else does.
  void start_threads(unsigned count) {
    try {
      while (threads_.size() < count) threads_.emplace_back([this] { serve(); });
    } catch (const std::system_error&) {
    }
  }

  [[noreturn]] void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      Job* job = nullptr;
      wake_.wait(lock, [&] {
        const auto open = std::find_if(
            jobs_.begin(), jobs_.end(), [](const Job* candidate) { return candidate->wanted > 0; });
        job = open == jobs_.end() ? nullptr : *open;
        return job != nullptr;
      });
      --job->wanted;
      ++job->running;
      lock.unlock();
      worker().run(job->launch);
      lock.lock();
      --job->running;
      done_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable done_;
  std::vector<std::thread> threads_;
  std::vector<Job*> jobs_;
};

// What launches share. Never destroyed: its threads sleep until the process ends.
struct Process {
  Pool pool;
  Watchdog watchdog;
  std::mutex sanitizing; // held by the one sanitized dispatch that runs, if any does
};

std::atomic<Process*> process{nullptr};

// A forked child has none of the threads, and nobody to release what they held.
void start_anew() {
  handlers().forget_users();
  process = new Process;
}

Process& this_process() {
  static std::once_flag once;
  std::call_once(once, [] {
    process = new Process;
    pthread_atfork(nullptr, nullptr, start_anew);
  });
  return *process;
}

// The worker that runs a sanitized dispatch, if any does. They go one at a time, each on one OS
// thread, so that what they report is the same every time.
Worker* watcher = nullptr;

Position* current_position() {
  return &worker().position;
}
// An operation's address is where kernel code called it, so none of these may be inlined.
[[gnu::noinline]] Lanes simd_gather(const void* value, unsigned size) {
  return worker().simd_gather(value, size, __builtin_return_address(0));
}
[[gnu::noinline]] void simdgroup_barrier(unsigned flags) {
  worker().wait(State::at_simd_barrier, flags, __builtin_return_address(0));
}
[[gnu::noinline]] void threadgroup_barrier(unsigned flags) {
  worker().wait(State::at_barrier, flags, __builtin_return_address(0));
}
void* threadgroup_memory(const ThreadgroupVariable& variable) {
  return worker().threadgroup_memory(variable);
}
void on_access(const void* address, unsigned long bytes, AccessKind kind, const void* pc) {
  watcher->sanitize([=](Sanitizer& sanitizer) { sanitizer.access(address, bytes, kind, pc); });
}
void on_misaligned(const void* address, unsigned alignment, const void* pc) {
  watcher->sanitize([=](Sanitizer& sanitizer) { sanitizer.misaligned(address, alignment, pc); });
}
void on_index_outside_array(const char* type, long index, const void* pc) {
  watcher->sanitize([=](Sanitizer& sanitizer) { sanitizer.outside_array(type, index, pc); });
}
void on_fence() {
  watcher->sanitize([](Sanitizer& sanitizer) { sanitizer.fence(); });
}
[[gnu::noinline]] void at_return(unsigned position) {
  watcher->at_return(position, __builtin_return_address(0));
}

const Runtime runtime{
    current_position,   simd_gather, simdgroup_barrier, threadgroup_barrier,
    threadgroup_memory, on_access,   on_misaligned,     on_index_outside_array,
    on_fence,           at_return};

// While it lives, a launch ends when its time is over or the user interrupts it.
class Watched {
 public:
  explicit Watched(Launch& launch) : launch_(launch) { this_process().watchdog.watch(launch); }
  ~Watched() { this_process().watchdog.forget(launch_); }
  Watched(const Watched&) = delete;

 private:
  Launch& launch_;
};

// While it lives, other threads of Python's can run.
class LockReleased {
 public:
  explicit LockReleased(const Interpreter& python)
      : python_(python), released_(python.release_lock()) {}
  ~LockReleased() { python_.take_lock(released_); }
  LockReleased(const LockReleased&) = delete;

 private:
  const Interpreter& python_;
  void* const released_;
};

void run_on_workers(Launch& launch) {
  const auto helpers = std::min<std::uint64_t>(launch.dispatch->workers, launch.group_count) - 1;
  if (helpers == 0) {
    worker().run(launch);
  } else {
    this_process().pool.run(launch, static_cast<unsigned>(helpers));
  }
}

void run_sanitized(Launch& launch, Outcome& outcome) {
  thread_local std::vector<Report> reports;
  std::lock_guard lock(this_process().sanitizing);
  const auto sanitizer = std::make_unique<Sanitizer>(*launch.dispatch, worker());
  if (!*sanitizer) {
    launch.fail(Failure::refused, "the sanitizer was refused the address space that it needs");
    return;
  }
  launch.sanitizer = sanitizer.get();
  watcher = &worker();
  watcher->run(launch);
  watcher = nullptr;
  sanitizer->end_dispatch();
  reports = sanitizer->reports();
  outcome.reports = reports.data();
  outcome.report_count = static_cast<unsigned>(reports.size());
  outcome.capped = sanitizer->capped();
  outcome.image = sanitizer->image();
}

} // namespace

extern "C" __attribute__((visibility("default"))) const Runtime* mpskit_runtime() {
  return &runtime;
}

// Runs a dispatch to its end, and says what came of it; not at all where a signal that came
// before raises an exception in Python.
extern "C" __attribute__((visibility("default"))) void
mpskit_dispatch(const Dispatch* dispatch, const Interpreter* python, Outcome* outcome) {
  Launch launch;
  launch.dispatch = dispatch;
  const auto ceil_div = [](unsigned a, unsigned b) { return (a - 1) / b + 1; };
  launch.groups = {
      ceil_div(dispatch->threads.x, dispatch->group_size.x),
      ceil_div(dispatch->threads.y, dispatch->group_size.y),
      ceil_div(dispatch->threads.z, dispatch->group_size.z)};
  launch.group_count = std::uint64_t{launch.groups.x} * launch.groups.y * launch.groups.z;
  {
    const Watched watched(launch); // before the handlers are there, which tell the watchdog
    handlers().acquire();
    // Our handlers saw nothing of an interrupt from before, and Python raises it only when it runs
    // again: when a launch without end would have ended.
    if (python->check_signals() == 0) {
      const LockReleased released(*python);
      try {
        dispatch->sanitized ? run_sanitized(launch, *outcome) : run_on_workers(launch);
      } catch (const std::bad_alloc&) {
        launch.fail(Failure::refused, "the system gave no memory for the launch");
      }
    }
    handlers().release();
  }
  outcome->failure = launch.failure;
  outcome->pc = launch.pc;
  std::snprintf(outcome->message, sizeof outcome->message, "%s", launch.message.c_str());
}
