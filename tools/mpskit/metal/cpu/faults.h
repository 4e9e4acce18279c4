// Ends a thread of a kernel that faults, or that a time limit has overtaken, without ending the
// process: the signal handler sends the OS thread back to the scheduler's stack.
#pragma once

#include "stack.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <mutex>
#include <new>

#include <pthread.h>
#include <signal.h>
#if defined(__linux__)
#include <ucontext.h>
#endif
#include <unistd.h>

namespace {

// Sent to the workers of a launch that is to end. Ignored by default, should one come late.
constexpr int stop_signal = SIGURG;
constexpr int handled_signals[] = {SIGSEGV, SIGBUS,  SIGFPE, SIGILL,
                                   SIGTRAP, SIGINT, stop_signal};
constexpr int signal_count = sizeof handled_signals / sizeof handled_signals[0];

// How often the user has interrupted the process, as far as our handlers were there to see it.
std::atomic<unsigned> interrupts{0};
volatile int watchdog_pipe = -1; // a byte into it wakes the watchdog

// A place in the block that each OS thread has from its start.
#if defined(__linux__)
#define MPSKIT_FAST_TLS __attribute__((tls_model("initial-exec")))
#else
#define MPSKIT_FAST_TLS
#endif

// The registers of a signal's context.
class Context {
 public:
  explicit Context(void* context) : machine_(static_cast<ucontext_t*>(context)->uc_mcontext) {}

  char* stack_pointer() const { return reinterpret_cast<char*>(registers().stack); }
  const char* pc() const { return reinterpret_cast<const char*>(registers().pc); }

  // Goes on, when the handler returns, with mpskit_switch_stack(from, to) on another stack.
  void switch_stack(void* stack, void** from, void* to) {
    const Registers at = registers();
    at.stack = reinterpret_cast<std::uintptr_t>(stack);
    at.pc = reinterpret_cast<std::uintptr_t>(&mpskit_switch_stack);
    at.first = reinterpret_cast<std::uintptr_t>(from);
    at.second = reinterpret_cast<std::uintptr_t>(to);
  }

 private:
  struct Registers {
#if defined(__linux__) && defined(__x86_64__)
    using Register = greg_t;
#elif defined(__linux__)
    using Register = unsigned long long;
#else
    using Register = __uint64_t;
#endif
    Register &stack, &pc, &first, &second;
  };

  Registers registers() const {
#if defined(__linux__) && defined(__x86_64__)
    auto& r = machine_.gregs;
    return {r[REG_RSP], r[REG_RIP], r[REG_RDI], r[REG_RSI]};
#elif defined(__linux__)
    return {machine_.sp, machine_.pc, machine_.regs[0], machine_.regs[1]};
#elif defined(__x86_64__)
    auto& r = machine_->__ss;
    return {r.__rsp, r.__rip, r.__rdi, r.__rsi};
#else
    auto& r = machine_->__ss;
    return {r.__sp, r.__pc, r.__x[0], r.__x[1]};
#endif
  }

  decltype(ucontext_t::uc_mcontext)& machine_;
};

// Who runs kernels on an OS thread, as the handler sees it.
class Interruptible {
 public:
  // Whether the signal was met: the thread that ran is ended. Called in a signal handler.
  virtual bool interrupt(int signal, const siginfo_t& info, Context& context) = 0;

 protected:
  ~Interruptible() = default;
};

// Read in signal handlers, hence without the calls that may allocate.
MPSKIT_FAST_TLS thread_local Interruptible* interruptible = nullptr;

// Our handlers, there while any dispatch runs; behind them those that were there before.
class Handlers {
 public:
  void acquire() {
    std::lock_guard lock(mutex_);
    if (users_++ > 0) return;
    struct sigaction ours{};
    ours.sa_sigaction = &handle;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    sigemptyset(&ours.sa_mask);
    for (int i = 0; i < signal_count; ++i)
      sigaction(handled_signals[i], &ours, &previous_[i]);
  }

  void release() {
    std::lock_guard lock(mutex_);
    if (--users_ == 0) restore();
  }

  // For a forked child, in which the threads that use the handlers are not.
  void forget_users() {
    new (&mutex_) std::mutex;
    if (users_ > 0) restore();
    users_ = 0;
  }

 private:
  void restore() {
    for (int i = 0; i < signal_count; ++i)
      sigaction(handled_signals[i], &previous_[i], nullptr);
  }

  static void handle(int signal, siginfo_t* info, void* context);
  void pass_on(int signal, siginfo_t* info, void* context);

  std::mutex mutex_;
  int users_ = 0;
  struct sigaction previous_[signal_count]{};
};

Handlers& handlers() {
  static Handlers* const them = new Handlers; // for as long as a signal can come
  return *them;
}

void Handlers::handle(int signal, siginfo_t* info, void* context) {
  const int saved = errno;
  Context registers(context);
  if (signal == SIGINT) {
    // Python's handler first: a launch that ended before it would return to Python with the
    // interrupt still to come, and raise it a second time.
    handlers().pass_on(signal, info, context);
    ++interrupts;
    (void)!write(watchdog_pipe, "i", 1);
  } else if (!interruptible || !interruptible->interrupt(signal, *info, registers)) {
    handlers().pass_on(signal, info, context);
  }
  errno = saved;
}

void Handlers::pass_on(int signal, siginfo_t* info, void* context) {
  for (int i = 0; i < signal_count; ++i) {
    if (handled_signals[i] != signal) continue;
    const struct sigaction& before = previous_[i];
    if (before.sa_flags & SA_SIGINFO) {
      before.sa_sigaction(signal, info, context);
    } else if (before.sa_handler == SIG_DFL && signal != stop_signal) {
      sigaction(signal, &before, nullptr); // the instruction faults again, this time for good
      if (signal == SIGINT) raise(signal);
    } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
      before.sa_handler(signal);
    }
  }
}

// A stack for the signal handlers of this OS thread, which a fiber's overflow leaves none on.
class SignalStack {
 public:
  SignalStack() {
    stack_t ours{};
    ours.ss_sp = memory_;
    ours.ss_size = sizeof memory_;
    sigaltstack(&ours, &previous_);
  }
  ~SignalStack() { sigaltstack(&previous_, nullptr); }
  SignalStack(const SignalStack&) = delete;

 private:
  stack_t previous_{};
  alignas(16) char memory_[64 * 1024];
};

} // namespace
