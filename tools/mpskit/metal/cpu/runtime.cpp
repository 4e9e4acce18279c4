// Runs kernels on the host: threads of a threadgroup are fibers, simdgroups of 32 wait for each
// other at simdgroup operations, threadgroups are spread over OS threads.
//
// A fiber never moves between OS threads, so a worker's state needs no locks. A thread that
// finishes without waiting leaves its stack to the next one: a kernel without barriers and
// simdgroup operations is a loop on one stack.
#include "abi.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace mpskit::abi;

// Context switch: saves what a call must preserve on the current stack, stores the stack pointer
// to *from, and goes on where `to` was stored.
extern "C" void mpskit_switch_stack(void** from, void* to);

#if defined(__APPLE__)
#define MPSKIT_SYMBOL(name) "_" #name
#else
#define MPSKIT_SYMBOL(name) #name
#endif

#if defined(__x86_64__)
asm(".text\n"
    ".globl " MPSKIT_SYMBOL(mpskit_switch_stack) "\n"
    MPSKIT_SYMBOL(mpskit_switch_stack) ":\n"
    "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
    "  movq %rsp, (%rdi)\n"
    "  movq %rsi, %rsp\n"
    "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
    "  retq\n");
constexpr int saved_words = 6; // below the return address
constexpr int return_slot = 6;
#elif defined(__aarch64__)
asm(".text\n"
    ".globl " MPSKIT_SYMBOL(mpskit_switch_stack) "\n"
    ".p2align 2\n"
    MPSKIT_SYMBOL(mpskit_switch_stack) ":\n"
    "  sub sp, sp, #160\n"
    "  stp x19, x20, [sp, #0]\n  stp x21, x22, [sp, #16]\n  stp x23, x24, [sp, #32]\n"
    "  stp x25, x26, [sp, #48]\n  stp x27, x28, [sp, #64]\n  stp x29, x30, [sp, #80]\n"
    "  stp d8, d9, [sp, #96]\n  stp d10, d11, [sp, #112]\n"
    "  stp d12, d13, [sp, #128]\n  stp d14, d15, [sp, #144]\n"
    "  mov x9, sp\n  str x9, [x0]\n  mov sp, x1\n"
    "  ldp x19, x20, [sp, #0]\n  ldp x21, x22, [sp, #16]\n  ldp x23, x24, [sp, #32]\n"
    "  ldp x25, x26, [sp, #48]\n  ldp x27, x28, [sp, #64]\n  ldp x29, x30, [sp, #80]\n"
    "  ldp d8, d9, [sp, #96]\n  ldp d10, d11, [sp, #112]\n"
    "  ldp d12, d13, [sp, #128]\n  ldp d14, d15, [sp, #144]\n"
    "  add sp, sp, #160\n"
    "  ret\n");
constexpr int saved_words = 20;
constexpr int return_slot = 11; // x30
#else
#error "mpskit's cpu backend switches stacks on x86-64 and arm64 only"
#endif

namespace {

constexpr std::size_t threadgroup_memory_limit = 32 * 1024;
constexpr std::size_t stack_bytes = 256 * 1024; // of address space; pages are taken when touched

enum class State : unsigned char { unstarted, running, at_simd_operation, at_simd_barrier,
                                   at_barrier, finished };

struct Stack {
  Stack() {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    void* memory = mmap(
        nullptr, stack_bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      std::fputs("mpskit: no memory for the stack of a Metal thread\n", stderr);
      std::abort();
    }
    mprotect(memory, page, PROT_NONE); // an overflow faults instead of damaging a neighbour
    base = memory;
    size = page + stack_bytes;
  }
  Stack(const Stack&) = delete;
  ~Stack() {
    munmap(base, size);
  }

  void** top() const {
    return reinterpret_cast<void**>(static_cast<char*>(base) + size);
  }

  void* base;
  std::size_t size;
};

// An operation, ordered as in the program: functions called from several places, and places that
// are no call of their own, are told apart by the address of the machine code.
struct Site {
  Position position;
  const void* address;

  auto order() const {
    return std::tuple(position.kernel, position.function, address);
  }
  bool operator==(const Site& other) const {
    return order() == other.order();
  }
  bool operator<(const Site& other) const {
    return order() < other.order();
  }
};

// One thread of the threadgroup that runs.
struct Fiber {
  void* stack_pointer;
  Site site; // of the operation it waits at
  unsigned operand_size;
  State state;
  alignas(16) unsigned char operand[lane_slot];
};

struct Simdgroup {
  alignas(64) unsigned char values[simd_width * lane_slot];
  alignas(64) unsigned char shared[lane_slot];
  bool has_shared;
  unsigned active;
};

// One launch, shared by the workers that take threadgroups from it.
struct Launch {
  const Dispatch* dispatch;
  Uint3 groups;
  std::uint64_t group_count;
  std::atomic<std::uint64_t> next{0};
  std::atomic<bool> failed{false};
  std::mutex mutex;
  std::string message;

  void fail(const std::string& what) {
    std::lock_guard lock(mutex);
    if (!failed.exchange(true)) {
      message = what;
    }
  }
};

unsigned volume(Uint3 size) {
  return size.x * size.y * size.z;
}

class Worker {
 public:
  Worker() {
    std::memset(memory_, poison, sizeof(memory_));
  }

  void run(Launch& launch);

  Lanes simd_gather(const void* value, unsigned size, const void* address);
  void wait(State state, const void* address);
  void* threadgroup_memory(unsigned site, std::size_t bytes, std::size_t alignment);

  [[noreturn]] void run_fibers();

  Position position; // of the thread that runs

 private:
  struct Place {
    unsigned site;
    void* address;
  };

  void run_group(std::uint64_t index);
  void reset();
  bool run_simdgroup(unsigned simdgroup);
  bool release_lanes(unsigned first, unsigned end);
  void resume(unsigned fiber);
  void switch_to_scheduler();
  void describe_thread(unsigned index);
  void* take_memory(std::size_t bytes, std::size_t alignment);
  void take_threadgroup_buffers();

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

  alignas(64) unsigned char memory_[threadgroup_memory_limit];
  std::size_t memory_used_ = 0;
  std::vector<Place> places_;
  std::vector<void*> threadgroup_buffers_;
};

// The worker of this OS thread. It lives as long as the thread: its stacks and fibers are reused.
Worker& worker() {
  thread_local std::unique_ptr<Worker> mine = std::make_unique<Worker>();
  return *mine;
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
  launch_ = &launch;
  while (!launch.failed.load(std::memory_order_relaxed)) {
    const auto index = launch.next.fetch_add(1, std::memory_order_relaxed);
    if (index >= launch.group_count) {
      break;
    }
    run_group(index);
  }
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
  count_ = volume(size);
  thread_.threadgroup_position_in_grid = group;
  thread_.threads_per_grid = dispatch.threads;
  thread_.threadgroups_per_grid = groups;
  thread_.threads_per_threadgroup = size;
  thread_.dispatch_threads_per_threadgroup = full;
  thread_.simdgroups_per_threadgroup = (count_ + simd_width - 1) / simd_width;
  thread_.dispatch_simdgroups_per_threadgroup = (volume(full) + simd_width - 1) / simd_width;
  for (unsigned i = 0; i < count_; ++i) {
    fibers_[i].state = State::unstarted;
  }
  std::memset(memory_, poison, memory_used_);
  memory_used_ = 0;
  places_.clear();
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
  const auto size = chosen->state == State::at_simd_operation ? chosen->operand_size : 0;
  Simdgroup& group = simdgroups_[first / simd_width];
  group.active = 0;
  group.has_shared = false;
  for (unsigned i = first; i < end; ++i) {
    Fiber& fiber = fibers_[i];
    const bool waits = fiber.state == State::at_simd_operation ||
        fiber.state == State::at_simd_barrier;
    if (waits && fiber.site == site) {
      std::memcpy(group.values + (i - first) * size, fiber.operand, size);
      group.active |= 1u << (i - first);
      fiber.state = State::running;
    }
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
  current_ = fiber;
  Fiber& next = fibers_[fiber];
  if (next.state == State::unstarted) {
    if (idle_stacks_.empty()) {
      idle_stacks_.push_back(prepare_stack(stacks_.emplace_back()));
    }
    next.stack_pointer = idle_stacks_.back();
    idle_stacks_.pop_back();
  }
  mpskit_switch_stack(&scheduler_, next.stack_pointer);
}

void Worker::switch_to_scheduler() {
  mpskit_switch_stack(&fibers_[current_].stack_pointer, scheduler_);
}

// The life of a stack: run a thread, then those behind it that have not started, then idle.
void Worker::run_fibers() {
  for (;;) {
    Fiber& fiber = fibers_[current_];
    fiber.state = State::running;
    position = {};
    describe_thread(current_);
    const Thread thread = thread_;
    const Dispatch& dispatch = *launch_->dispatch;
    dispatch.kernel->entry(thread, dispatch.buffers, threadgroup_buffers_.data());
    fibers_[current_].state = State::finished;
    if (current_ + 1 < simdgroup_end_ && fibers_[current_ + 1].state == State::unstarted) {
      ++current_;
      continue;
    }
    idle_stacks_.push_back(nullptr);
    mpskit_switch_stack(&idle_stacks_.back(), scheduler_);
  }
}

void Worker::describe_thread(unsigned index) {
  const Uint3 size = thread_.threads_per_threadgroup;
  const Uint3 full = thread_.dispatch_threads_per_threadgroup;
  const Uint3 group = thread_.threadgroup_position_in_grid;
  const Uint3 at{index % size.x, index / size.x % size.y, index / size.x / size.y};
  thread_.thread_position_in_threadgroup = at;
  thread_.thread_position_in_grid = {
      group.x * full.x + at.x, group.y * full.y + at.y, group.z * full.z + at.z};
  thread_.thread_index_in_threadgroup = index;
  thread_.thread_index_in_simdgroup = index % simd_width;
  thread_.simdgroup_index_in_threadgroup = index / simd_width;
}

void Worker::wait(State state, const void* address) {
  Fiber& fiber = fibers_[current_];
  fiber.state = state;
  fiber.site = {position, address};
  switch_to_scheduler();
  position = fiber.site.position;
}

Lanes Worker::simd_gather(const void* value, unsigned size, const void* address) {
  const unsigned index = current_;
  Fiber& fiber = fibers_[index];
  std::memcpy(fiber.operand, value, size);
  fiber.operand_size = size;
  wait(State::at_simd_operation, address);
  Simdgroup& group = simdgroups_[index / simd_width];
  return {group.values, group.active, index % simd_width, group.shared, &group.has_shared};
}

void* Worker::threadgroup_memory(unsigned site, std::size_t bytes, std::size_t alignment) {
  for (const Place& place : places_) {
    if (place.site == site) {
      return place.address;
    }
  }
  void* address = take_memory(bytes, alignment);
  if (!address) {
    abandoned_ = true;
    switch_to_scheduler(); // never to return: the launch has failed
  }
  places_.push_back({site, address});
  return address;
}

void* Worker::take_memory(std::size_t bytes, std::size_t alignment) {
  const std::size_t begin = (memory_used_ + alignment - 1) / alignment * alignment;
  if (begin + bytes > sizeof(memory_)) {
    launch_->fail(
        "threadgroup memory: " + std::to_string(begin + bytes) + " bytes are needed, " +
        std::to_string(sizeof(memory_)) + " is the most that a threadgroup has");
    return nullptr;
  }
  memory_used_ = begin + bytes;
  return memory_ + begin;
}

void Worker::take_threadgroup_buffers() {
  const Dispatch& dispatch = *launch_->dispatch;
  threadgroup_buffers_.clear();
  for (unsigned i = 0; i < dispatch.threadgroup_length_count; ++i) {
    threadgroup_buffers_.push_back(take_memory(dispatch.threadgroup_lengths[i], 16));
  }
}

// OS threads that help with launches. They start when they are first needed and then sleep.
class Pool {
 public:
  // Runs a launch on the calling thread and on up to `helpers` others; returns when all are done.
  void run(Launch& launch, unsigned helpers) {
    Job job{launch, helpers};
    {
      std::lock_guard lock(mutex_);
      while (threads_.size() < helpers) {
        threads_.emplace_back([this] { serve(); });
      }
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

// Never destroyed: its threads sleep until the process ends. A forked child has none of them, so
// it makes a pool of its own.
std::atomic<Pool*> pool{nullptr};

Pool& the_pool() {
  static std::once_flag once;
  std::call_once(once, [] {
    pool = new Pool;
    pthread_atfork(nullptr, nullptr, [] { pool = new Pool; });
  });
  return *pool;
}

Position* current_position() {
  return &worker().position;
}
// An operation's address is where kernel code called it, so none of these may be inlined.
[[gnu::noinline]] Lanes simd_gather(const void* value, unsigned size) {
  return worker().simd_gather(value, size, __builtin_return_address(0));
}
[[gnu::noinline]] void simdgroup_barrier(unsigned) {
  worker().wait(State::at_simd_barrier, __builtin_return_address(0));
}
[[gnu::noinline]] void threadgroup_barrier(unsigned) {
  worker().wait(State::at_barrier, __builtin_return_address(0));
}
void* threadgroup_memory(unsigned site, unsigned long bytes, unsigned long alignment) {
  return worker().threadgroup_memory(site, bytes, alignment);
}

const Runtime runtime{
    current_position, simd_gather, simdgroup_barrier, threadgroup_barrier, threadgroup_memory};

} // namespace

extern "C" __attribute__((visibility("default"))) const Runtime* mpskit_runtime() {
  return &runtime;
}

// Runs a dispatch to its end. Returns 0, or 1 with the reason in `message`.
extern "C" __attribute__((visibility("default"))) int
mpskit_dispatch(const Dispatch* dispatch, char* message, unsigned long capacity) {
  Launch launch;
  launch.dispatch = dispatch;
  const auto ceil_div = [](unsigned a, unsigned b) { return (a - 1) / b + 1; };
  launch.groups = {
      ceil_div(dispatch->threads.x, dispatch->group_size.x),
      ceil_div(dispatch->threads.y, dispatch->group_size.y),
      ceil_div(dispatch->threads.z, dispatch->group_size.z)};
  launch.group_count = std::uint64_t{launch.groups.x} * launch.groups.y * launch.groups.z;
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  const unsigned workers = dispatch->workers ? dispatch->workers : cores;
  const auto helpers = std::min<std::uint64_t>(workers, launch.group_count) - 1;
  if (helpers == 0) {
    worker().run(launch);
  } else {
    the_pool().run(launch, static_cast<unsigned>(helpers));
  }
  if (launch.failed) {
    std::snprintf(message, capacity, "%s", launch.message.c_str());
    return 1;
  }
  return 0;
}
