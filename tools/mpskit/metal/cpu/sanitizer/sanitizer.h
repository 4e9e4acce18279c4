// Watches one dispatch: every access of its kernel, every barrier and simdgroup operation.
#pragma once

#include "abi.h"
#include "fiber.h"
#include "memory.h"
#include "order.h"
#include "shadow.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <set>
#include <tuple>
#include <vector>

#include <dlfcn.h>

namespace {

constexpr unsigned max_reports = 256;

// What runs a kernel, so far as the kernel's code touches it.
class Surroundings {
 public:
  virtual bool holds_stack(const void* address) const = 0;
  virtual bool holds_state(const void* address) const = 0;

 protected:
  ~Surroundings() = default;
};

class Sanitizer {
 public:
  Sanitizer(const Dispatch& dispatch, const Surroundings& surroundings)
      : dispatch_(dispatch),
        surroundings_(surroundings),
        memory_(dispatch),
        image_(image_of(reinterpret_cast<const void*>(dispatch.kernel->entry))) {}

  explicit operator bool() const { return static_cast<bool>(memory_); }
  void* const* buffers() const { return memory_.addresses(); }
  const void* image() const { return image_; }
  const std::vector<Report>& reports() const { return reports_; }
  bool capped() const { return capped_; }

  void start_group(Uint3 position, Uint3 size) {
    group_ = position;
    group_size_ = size;
    order_.start_group(product(size));
    releases_.start_group();
    starts_.push_back(order_.group_start());
    memory_.forget_threadgroup_memory();
  }

  void end_dispatch() {
    settle();
    memory_.copy_back();
  }

  void set_thread(unsigned thread) { thread_ = thread; }

  void* threadgroup_variable(const ThreadgroupVariable& declared) {
    Region* region = memory_.threadgroup_variable(declared);
    if (!region) return nullptr;
    if (region->written.empty()) {
      region->written.assign(declared.bytes, false);
      std::memset(region->begin, poison, declared.bytes);
    }
    return region->begin;
  }

  void access(const void* address, std::size_t bytes, AccessKind kind, const void* pc) {
    if (pending_.report) settle();
    Region* region = memory_.region_of(address);
    if (!region) {
      if (!is_kernels_own(address)) report_stray(bytes, kind, pc);
      return;
    }
    const auto* at = static_cast<const char*>(address);
    if (at < region->begin || at + bytes > region->end) {
      report_memory(Check::out_of_bounds, *region, at, bytes, kind, pc);
      return;
    }
    const bool write = is_write(kind);
    region->written_to |= write;
    if (write && !region->variable_at(at, true).writable) {
      report_memory(Check::read_only_write, *region, at, bytes, kind, pc);
      return;
    }
    if (!region->shadow) return;
    if (region->is_threadgroup()) track_written(*region, at, bytes, kind, pc);
    if (is_atomic(kind)) {
      write ? releases_.atomic_write(address) : releases_.atomic_read(address);
    }
    const Stamp stamp{
        order_.time_of(thread_), static_cast<std::uint32_t>(static_cast<const char*>(pc) - image_),
        static_cast<std::uint16_t>(thread_), 0, is_atomic(kind)};
    region->shadow.visit(
        static_cast<std::size_t>(at - region->begin), bytes, [&](Cell& cell, std::uint8_t mask) {
          Stamp now = stamp;
          now.bytes = mask;
          return write ? record_write(*region, cell, now, at, bytes, kind, pc)
                       : record_read(*region, cell, now, at, bytes, kind, pc);
        });
  }

  void misaligned(const void* address, unsigned alignment, const void* pc) {
    Region* region = memory_.region_of(address);
    if (!region) return;
    const auto* at = static_cast<const char*>(address);
    if (Report* report =
            report_memory(Check::misaligned_access, *region, at, alignment, AccessKind::read, pc)) {
      report->alignment = alignment;
    }
  }

  // `threadgroup` arrays are left to access(): going from one row to the next is no mistake there.
  void outside_array(const char* type, long index, const void* pc) {
    const char* extent = std::strchr(type, '[');
    if (extent && memory_.has_threadgroup_extent(std::strtoul(extent + 1, nullptr, 10))) return;
    if (Report* made = report(Check::out_of_bounds, pc, nullptr)) {
      made->access = access_of(thread_, AccessKind::read, 0, pc);
      made->array_type = type;
      made->index = index;
    }
  }

  // The thread's last access was the end of it: that says more than that it was a stray one.
  void faulted() {
    if (stray_ && stray_ == reports_.size()) reports_.pop_back();
  }

  void fence() { releases_.fence(order_, thread_); }

  // All that have not returned met at a threadgroup barrier.
  void threadgroup_barrier(const std::vector<Fiber>& fibers, unsigned count) {
    settle();
    unsigned flags = ~0u;
    const Fiber* met = nullptr;
    for (unsigned i = 0; i < count; ++i) {
      if (fibers[i].state != State::at_barrier) continue;
      flags &= fibers[i].barrier_flags;
      if (!met || precedes(fibers[i].site.position, met->site.position)) met = &fibers[i];
    }
    Meeting meeting(fibers.data(), 0, count);
    for (unsigned i = 0; i < count; ++i) {
      if (!same(fibers[i].site.position, met->site.position) ||
          fibers[i].state == State::finished) {
        meeting.add_absent(i);
      } else {
        meeting.add_present(i);
      }
    }
    if (meeting.absent_count) report_meeting(Check::barrier_divergence, meeting);
    order_.threadgroup_barrier(flags, count);
  }

  // Lanes of `active` met at a simdgroup operation or barrier; the simdgroup's threads are
  // [first, end).
  void simdgroup_operation(
      const std::vector<Fiber>& fibers,
      unsigned first,
      unsigned end,
      unsigned active,
      bool barrier) {
    settle();
    const unsigned present = first + static_cast<unsigned>(__builtin_ctz(active));
    const Fiber& met = fibers[present];
    const unsigned all = end - first == simd_width ? ~0u : (1u << (end - first)) - 1;
    if (active != all) {
      check_convergence(fibers, first, end, active, barrier, met.site);
    }
    const unsigned flags = barrier ? met.barrier_flags : mem_device | mem_threadgroup;
    order_.simdgroup_operation(first / simd_width, active, active == all, flags);
  }

  // Whether two writes that race wrote the same is known once the second has happened.
  void settle() {
    if (!pending_.report) return;
    reports_[pending_.report - 1].same_value =
        std::memcmp(pending_.address, pending_.before, pending_.bytes) == 0;
    pending_.report = 0;
  }

 private:
  struct Meeting {
    Meeting(const Fiber* fibers, unsigned begin, unsigned end)
        : fibers(fibers), begin(begin), end(end) {}

    // Whether the absent ones wait inside the call of the kernel's that the present ones are in.
    bool in_one_call() const {
      const unsigned call = fibers[present].site.position.kernel;
      return std::all_of(fibers + begin, fibers + end, [&](const Fiber& fiber) {
        return fiber.state != State::finished && fiber.site.position.kernel == call;
      });
    }

    void add_present(unsigned thread) {
      if (present == ~0u) present = thread;
      ++active;
    }

    void add_absent(unsigned thread) {
      const Fiber& fiber = fibers[thread];
      auto place = Absent::Place::at_simd_operation;
      const void* pc = fiber.site.address;
      if (fiber.state == State::at_barrier) place = Absent::Place::at_barrier;
      if (fiber.state == State::finished) {
        place = fiber.returned_pc ? Absent::Place::returned : Absent::Place::ran_to_end;
        pc = fiber.returned_pc;
      }
      for (unsigned i = 0; i < absent_count; ++i) {
        if (absent[i].place == place && absent[i].pc == pc) {
          absent[i].last = thread;
          ++absent[i].count;
          return;
        }
      }
      if (absent_count < max_absent) absent[absent_count++] = {place, pc, thread, thread, 1};
    }

    const Fiber* fibers;
    unsigned begin, end;
    unsigned present = ~0u; // the first thread that met
    unsigned active = 0;
    Absent absent[max_absent] = {};
    unsigned absent_count = 0;
  };

  static const char* image_of(const void* address) {
    Dl_info info{};
    return dladdr(address, &info) ? static_cast<const char*>(info.dli_fbase) : nullptr;
  }

  // Whether an address is a local variable's, a program's constant's or the runtime's.
  bool is_kernels_own(const void* address) {
    if (surroundings_.holds_state(address) || memory_.holds_addresses(address)) return true;
    const std::uint64_t page = reinterpret_cast<std::uintptr_t>(address) / page_bytes;
    std::uint64_t& known = own_pages_[page * golden_ratio >> (64 - own_pages_bits)];
    if (known == page) return true;
    const bool own = surroundings_.holds_stack(address) || is_in_images(address);
    if (own) known = page;
    return own;
  }

  bool is_in_images(const void* address) const {
    const char* image = image_of(address);
    return image && (image == image_ || image == runtime_image_);
  }

  static Operation operation_at(Position position) {
    const unsigned marked = position.function ? position.function : position.kernel;
    return static_cast<Operation>(marked & ((1u << operation_bits) - 1));
  }

  // A lane that returned ahead of the operation, in the program's text, is out of it by a guard.
  // For a barrier that is no excuse.
  static bool passed_over(const Fiber& fiber, Position operation) {
    if (fiber.state != State::finished) return !same(fiber.site.position, operation);
    if (!fiber.returned_pc) return true;
    return operation.kernel != 0 && fiber.returned.kernel > operation.kernel;
  }

  void check_convergence(
      const std::vector<Fiber>& fibers,
      unsigned first,
      unsigned end,
      unsigned active,
      bool barrier,
      const Site& site) {
    const Operation operation = operation_at(site.position);
    if (operation == Operation::of_active_lanes) return;
    Meeting meeting(fibers.data(), first, end);
    for (unsigned i = first; i < end; ++i) {
      const unsigned lane = i - first;
      if (active >> lane & 1) {
        meeting.add_present(i);
      } else if (operation == Operation::quad && !(active >> (lane & ~3u) & 0xFu)) {
        continue; // nobody of its quad takes part
      } else if (barrier || passed_over(fibers[i], site.position)) {
        meeting.add_absent(i);
      }
    }
    if (meeting.absent_count) {
      report_meeting(barrier ? Check::barrier_divergence : Check::simd_divergence, meeting);
    }
  }

  void track_written(
      Region& region, const char* at, std::size_t bytes, AccessKind kind, const void* pc) {
    const auto begin = static_cast<std::size_t>(at - region.begin);
    if (is_write(kind)) {
      std::fill_n(region.written.begin() + static_cast<long>(begin), bytes, true);
      return;
    }
    // Of a wide read the padding of a struct or 3-vector may be unwritten by right.
    const std::size_t unit = std::min<std::size_t>(bytes, 8);
    for (std::size_t i = begin; i < begin + bytes; i += unit) {
      bool any = false;
      for (std::size_t k = i; k < i + unit && k < begin + bytes; ++k) any |= region.written[k];
      if (!any) {
        report_memory(
            Check::unwritten_threadgroup_memory, region, region.begin + i, unit, kind, pc);
        return;
      }
    }
  }

  bool record_write(
      Region& region,
      Cell& cell,
      const Stamp& now,
      const char* at,
      std::size_t bytes,
      AccessKind kind,
      const void* pc) {
    bool raced = races(region, cell.write, now);
    if (raced) {
      report_race(region, cell.write, true, at, bytes, kind, pc);
    } else {
      for (const Stamp& read : cell.reads) {
        if (!raced && races(region, read, now)) {
          raced = true;
          report_race(region, read, false, at, bytes, kind, pc);
        }
      }
    }
    cell.write = now;
    return !raced;
  }

  bool record_read(
      Region& region,
      Cell& cell,
      const Stamp& now,
      const char* at,
      std::size_t bytes,
      AccessKind kind,
      const void* pc) {
    const bool raced = races(region, cell.write, now);
    if (raced) report_race(region, cell.write, true, at, bytes, kind, pc);
    remember_read(region, cell, now);
    return !raced;
  }

  // Keeps two reads that no one thread made, of two simdgroups or threadgroups where it can: a
  // write that races with any read then races with one that is kept.
  void remember_read(const Region& region, Cell& cell, const Stamp& now) {
    for (Stamp& read : cell.reads) {
      const bool replaceable = read.time == 0 || ordered(region, read, now);
      if (replaceable && (read.bytes & ~now.bytes) == 0) {
        read = now;
        return;
      }
    }
    const auto party = [&](const Stamp& stamp) {
      return stamp.time < order_.group_start() ? max_simdgroups : stamp.thread / simd_width;
    };
    if (party(cell.reads[0]) == party(cell.reads[1])) cell.reads[1] = now;
  }

  bool ordered(const Region& region, const Stamp& earlier, const Stamp& now) const {
    if (earlier.time < order_.group_start()) {
      return region.is_threadgroup() || releases_.acquired(earlier);
    }
    return order_.before(
        earlier, now.thread, region.is_threadgroup() ? threadgroup_memory_kind : device_memory);
  }

  bool races(const Region& region, const Stamp& earlier, const Stamp& now) const {
    return earlier.time != 0 && (earlier.bytes & now.bytes) && !(earlier.atomic && now.atomic) &&
           !ordered(region, earlier, now);
  }

  Uint3 thread_position(unsigned thread, Uint3 size) const {
    return {thread % size.x, thread / size.x % size.y, thread / size.x / size.y};
  }

  Access access_of(unsigned thread, AccessKind kind, std::size_t bytes, const void* pc) const {
    return {pc, thread_position(thread, group_size_), group_, kind, static_cast<unsigned>(bytes)};
  }

  // Who made an earlier access, perhaps in another threadgroup.
  Access access_of(const Stamp& stamp, bool write) const {
    const auto next = std::upper_bound(starts_.begin(), starts_.end(), stamp.time);
    const auto index = static_cast<std::uint64_t>(next - starts_.begin() - 1);
    const auto groups = [&](unsigned threads, unsigned size) { return (threads - 1) / size + 1; };
    const Uint3 full = dispatch_.group_size;
    const unsigned x = groups(dispatch_.threads.x, full.x);
    const unsigned y = groups(dispatch_.threads.y, full.y);
    const Uint3 group{
        static_cast<unsigned>(index % x), static_cast<unsigned>(index / x % y),
        static_cast<unsigned>(index / x / y)};
    const Uint3 size{
        std::min(full.x, dispatch_.threads.x - group.x * full.x),
        std::min(full.y, dispatch_.threads.y - group.y * full.y), full.z};
    const AccessKind kind = write ? (stamp.atomic ? AccessKind::atomic_write : AccessKind::write)
                                  : (stamp.atomic ? AccessKind::atomic_read : AccessKind::read);
    return {
        image_ + stamp.pc, thread_position(stamp.thread, size), group, kind,
        static_cast<unsigned>(__builtin_popcount(stamp.bytes))};
  }

  // A new report, or null where one of this kind about these places was made or there is no room.
  Report* report(Check check, const void* pc, const void* other, const Region* region = nullptr) {
    if (!seen_.insert({check, pc, other, region}).second) return nullptr;
    if (reports_.size() == max_reports) {
      capped_ = true;
      return nullptr;
    }
    Report& report = reports_.emplace_back();
    report.check = check;
    report.variable = nullptr;
    report.array_type = nullptr;
    return &report;
  }

  Report* report_memory(
      Check check,
      const Region& region,
      const char* at,
      std::size_t bytes,
      AccessKind kind,
      const void* pc,
      const void* other = nullptr) {
    Report* made = report(check, pc, other, &region);
    if (!made) return nullptr;
    const Variable& variable = region.variable_at(at, is_write(kind));
    made->access = access_of(thread_, kind, bytes, pc);
    made->variable = variable.name;
    made->space = variable.space;
    const long element = std::max(1u, variable.element_bytes);
    const long offset = at - variable.begin;
    made->index = offset >= 0 ? offset / element : -((element - 1 - offset) / element);
    made->elements = static_cast<unsigned long>((variable.end - variable.begin) / element);
    return made;
  }

  // An access to an address that is no buffer's, taken from a pointer that nobody gave.
  void report_stray(std::size_t bytes, AccessKind kind, const void* pc) {
    if (Report* made = report(Check::out_of_bounds, pc, nullptr)) {
      made->access = access_of(thread_, kind, bytes, pc);
      stray_ = reports_.size();
    }
  }

  void report_race(
      const Region& region,
      const Stamp& earlier,
      bool earlier_wrote,
      const char* at,
      std::size_t bytes,
      AccessKind kind,
      const void* pc) {
    const bool across = earlier.time < order_.group_start();
    Report* made = report_memory(
        across ? Check::race_across_threadgroups : Check::race_in_threadgroup, region, at, bytes,
        kind, pc, image_ + earlier.pc);
    if (!made) return;
    made->other = access_of(earlier, earlier_wrote);
    if (earlier_wrote && kind == AccessKind::write && bytes <= sizeof pending_.before) {
      pending_.report = reports_.size();
      pending_.address = at;
      pending_.bytes = bytes;
      std::memcpy(pending_.before, at, bytes);
    }
  }

  void report_meeting(Check check, const Meeting& meeting) {
    if (meeting.present == ~0u) return;
    const Fiber& fiber = meeting.fibers[meeting.present];
    Report* made = report(check, fiber.site.address, nullptr);
    if (!made) return;
    made->access = access_of(meeting.present, AccessKind::read, 0, fiber.site.address);
    made->active = meeting.active;
    made->expected = meeting.end - meeting.begin;
    made->simdgroup = fiber.state != State::at_barrier;
    made->in_one_call = meeting.in_one_call();
    std::copy_n(meeting.absent, max_absent, made->absent);
    made->absent_count = meeting.absent_count;
  }

  struct Pending {
    std::size_t report = 0; // its number, from 1
    const char* address = nullptr;
    std::size_t bytes = 0;
    unsigned char before[16];
  };

  static constexpr std::uint64_t page_bytes = 4096;
  static constexpr std::uint64_t golden_ratio = 0x9E3779B97F4A7C15; // spreads what it multiplies
  static constexpr unsigned own_pages_bits = 12;

  const Dispatch& dispatch_;
  const Surroundings& surroundings_;
  GuardedMemory memory_;
  const char* image_;
  const char* runtime_image_ = image_of(reinterpret_cast<const void*>(&image_of));
  std::uint64_t own_pages_[1u << own_pages_bits] = {};
  std::size_t stray_ = 0; // the number of the last report of such an access, from 1
  Order order_;
  Releases releases_;
  std::vector<std::uint32_t> starts_; // of the threadgroups, in the order of their indices
  Uint3 group_{};
  Uint3 group_size_{};
  unsigned thread_ = 0;
  Pending pending_;
  std::vector<Report> reports_;
  std::set<std::tuple<Check, const void*, const void*, const Region*>> seen_;
  bool capped_ = false;
};

} // namespace
