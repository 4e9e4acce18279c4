// Stops launches whose time is over, or that the user interrupts: one OS thread for all of them.
#pragma once

#include "abi.h"
#include "faults.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

namespace {

// A launch as the watchdog sees it.
class Stoppable {
 public:
  // Why threads are to be stopped wherever they are; none while they are not.
  std::atomic<mpskit::abi::Failure> stop{mpskit::abi::Failure::none};
  const unsigned interrupts_before = interrupts;

  virtual double timeout() const = 0; // seconds, 0 for none
  virtual bool interruptible() const = 0;
  virtual void signal_workers() = 0; // with stop_signal

 protected:
  ~Stoppable() = default;
};

class Watchdog {
 public:
  // Where the system gives no pipe or thread, launches run to their end.
  Watchdog() {
    if (pipe(pipe_) != 0) return;
    for (int end : pipe_) fcntl(end, F_SETFL, O_NONBLOCK);
    watchdog_pipe = pipe_[1];
    try {
      thread_ = std::thread([this] { run(); });
    } catch (const std::system_error&) {
    }
  }

  void watch(Stoppable& launch) {
    std::lock_guard lock(mutex_);
    auto deadline = Clock::time_point::max();
    if (launch.timeout() > 0) {
      deadline = Clock::now() +
          std::chrono::duration_cast<Clock::duration>(
              std::chrono::duration<double>(std::min(launch.timeout(), longest_timeout)));
      wake();
    }
    watched_.push_back({&launch, deadline});
  }

  void forget(Stoppable& launch) {
    std::lock_guard lock(mutex_);
    watched_.erase(std::find_if(watched_.begin(), watched_.end(), [&](const Watched& watched) {
      return watched.launch == &launch;
    }));
  }

 private:
  using Clock = std::chrono::steady_clock;
  using Failure = mpskit::abi::Failure;

  static constexpr double longest_timeout = 1e8; // three years
  // A thread inside the runtime is left alone, so more than one signal may be needed.
  static constexpr int milliseconds_between_signals = 2;

  struct Watched {
    Stoppable* launch;
    Clock::time_point deadline;
  };

  void wake() { (void)!write(pipe_[1], "w", 1); }

  [[noreturn]] void run() {
    for (;;) {
      pollfd woken{pipe_[0], POLLIN, 0};
      poll(&woken, 1, milliseconds_to_wait());
      char bytes[64];
      while (read(pipe_[0], bytes, sizeof bytes) > 0) {
      }
      stop_launches();
    }
  }

  void stop_launches() {
    std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    for (const Watched& watched : watched_) {
      Stoppable& launch = *watched.launch;
      // Counted, not told by the byte: one that ended the launch before must not end this one too.
      const bool interrupted = interrupts != launch.interrupts_before;
      if (interrupted && launch.interruptible()) launch.stop = Failure::interrupted;
      if (launch.stop == Failure::none && now >= watched.deadline) launch.stop = Failure::timeout;
      if (launch.stop != Failure::none) launch.signal_workers();
    }
  }

  int milliseconds_to_wait() {
    std::lock_guard lock(mutex_);
    int wait = -1; // for ever
    const auto now = Clock::now();
    for (const Watched& watched : watched_) {
      long own = milliseconds_between_signals;
      if (watched.launch->stop == Failure::none) {
        if (watched.deadline == Clock::time_point::max()) continue;
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(watched.deadline - now);
        own = std::clamp<long>(left.count(), 0, 1000 * 1000);
      }
      wait = wait < 0 ? static_cast<int>(own) : std::min(wait, static_cast<int>(own));
    }
    return wait;
  }

  int pipe_[2] = {-1, -1};
  std::mutex mutex_;
  std::vector<Watched> watched_;
  std::thread thread_;
};

} // namespace
