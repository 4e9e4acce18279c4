// Which access of a threadgroup comes before which, by its barriers and simdgroup operations.
#pragma once

#include "abi.h"
#include "shadow.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <unordered_map>
#include <vector>

namespace {

using namespace mpskit::abi;

// Memories that a flag orders apart from each other.
enum Memory : unsigned { device_memory, threadgroup_memory_kind, memory_kinds };

// metal::mem_flags
constexpr unsigned mem_device = 1;
constexpr unsigned mem_threadgroup = 2;

constexpr unsigned max_threads = 1024;
constexpr unsigned max_simdgroups = max_threads / simd_width;

class Order {
 public:
  // Times grow through all threadgroups of a dispatch: one that is older than `group_start` belongs
  // to another threadgroup.
  std::uint32_t group_start() const { return group_start_; }
  std::uint32_t time_of(unsigned thread) const { return times_[thread]; }

  void start_group(unsigned threads) {
    group_start_ = ++now_;
    std::fill_n(times_, threads, now_);
  }

  // Every thread that has not returned met at a barrier that orders the memories of `flags`.
  void threadgroup_barrier(unsigned flags, unsigned threads) {
    ++now_;
    std::fill_n(times_, threads, now_);
    for (unsigned kind = 0; kind < memory_kinds; ++kind) {
      if (orders(flags, kind)) barrier_[kind] = now_;
    }
  }

  // The lanes of `active` met; `whole`: these are all that the simdgroup has.
  void simdgroup_operation(unsigned simdgroup, unsigned active, bool whole, unsigned flags) {
    ++now_;
    for (unsigned kind = 0; kind < memory_kinds; ++kind) {
      if (!orders(flags, kind)) continue;
      if (whole) {
        whole_[kind][simdgroup] = now_;
      } else {
        join(seen_[kind][simdgroup], active);
      }
    }
    for (unsigned lane = 0; lane < simd_width; ++lane) {
      if (active >> lane & 1) times_[simdgroup * simd_width + lane] = now_;
    }
  }

  // Whether an access of this threadgroup comes before what `thread` does now.
  bool before(const Stamp& earlier, unsigned thread, Memory kind) const {
    if (earlier.thread == thread || earlier.time < barrier_[kind]) return true;
    const unsigned simdgroup = thread / simd_width;
    if (earlier.thread / simd_width != simdgroup) return false;
    return earlier.time < whole_[kind][simdgroup] ||
           earlier.time < seen_[kind][simdgroup][thread % simd_width][earlier.thread % simd_width];
  }

  std::uint32_t last_barrier(Memory kind) const { return barrier_[kind]; }

 private:
  // Row `lane` says, for each other lane, since when that lane's accesses are unknown to `lane`.
  using Seen = std::uint32_t[simd_width][simd_width];

  static bool orders(unsigned flags, unsigned kind) {
    return flags & (kind == device_memory ? mem_device : mem_threadgroup);
  }

  void join(Seen& seen, unsigned active) {
    std::uint32_t joint[simd_width] = {};
    for (unsigned lane = 0; lane < simd_width; ++lane) {
      if (!(active >> lane & 1)) continue;
      for (unsigned other = 0; other < simd_width; ++other) {
        joint[other] = std::max(joint[other], seen[lane][other]);
      }
    }
    for (unsigned lane = 0; lane < simd_width; ++lane) {
      if (active >> lane & 1) joint[lane] = now_;
    }
    for (unsigned lane = 0; lane < simd_width; ++lane) {
      if (active >> lane & 1) std::memcpy(seen[lane], joint, sizeof joint);
    }
  }

  std::uint32_t now_ = 0;
  std::uint32_t group_start_ = 0;
  std::uint32_t times_[max_threads] = {};
  std::uint32_t barrier_[memory_kinds] = {};
  std::uint32_t whole_[memory_kinds][max_simdgroups] = {};
  Seen seen_[memory_kinds][max_simdgroups] = {};
};

// What fences and atomics order across threadgroups: a threadgroup that passes a fence and then
// writes an atomic releases what it did before; one that reads the atomic and then passes a fence
// has acquired that.
class Releases {
 public:
  struct Interval {
    std::uint32_t begin;   // the threadgroup's start,
    std::uint32_t end;     // its last device barrier before the fence,
    std::uint32_t own_end; // and the fence, for the thread that passed it
    std::uint16_t thread;
  };

  void start_group() {
    fenced_ = false;
    read_.clear();
    acquired_.clear();
  }

  void fence(const Order& order, unsigned thread) {
    fenced_ = true;
    release_ = {
        order.group_start(), order.last_barrier(device_memory), order.time_of(thread) + 1,
        static_cast<std::uint16_t>(thread)};
    for (const void* atomic : read_) {
      const auto& released = released_[atomic];
      acquired_.insert(acquired_.end(), released.begin(), released.end());
    }
    read_.clear();
  }

  void atomic_write(const void* address) {
    if (fenced_) released_[address].push_back(release_);
  }
  void atomic_read(const void* address) {
    if (released_.count(address)) read_.push_back(address);
  }

  bool acquired(const Stamp& stamp) const {
    return std::any_of(acquired_.begin(), acquired_.end(), [&](const Interval& interval) {
      return stamp.time >= interval.begin &&
             (stamp.time < interval.end ||
              (stamp.thread == interval.thread && stamp.time < interval.own_end));
    });
  }

 private:
  bool fenced_ = false;
  Interval release_{};
  std::vector<const void*> read_;
  std::vector<Interval> acquired_;
  std::unordered_map<const void*, std::vector<Interval>> released_;
};

} // namespace
