// Where a sanitized kernel finds its buffers and `threadgroup` variables: each alone in the middle
// of a wide range of addresses, so that what lies beside it belongs to nobody and an access there
// says by itself which variable was missed.
#pragma once

#include "abi.h"
#include "shadow.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

namespace {

using namespace mpskit::abi;

// A buffer or a `threadgroup` variable.
struct Variable {
  const char* name;
  Space space;
  char* begin;
  char* end;
  unsigned element_bytes;
  bool writable;
  char* original; // the argument's memory, which `begin` is a copy of
};

// Variables that share memory, as tensors of one storage do; mostly one. [begin, end) covers them.
struct Region {
  char* begin = nullptr;
  char* end = nullptr;
  std::vector<Variable> variables;
  bool writable = false;
  bool written_to = false; // by anybody
  Shadow shadow; // of memory that somebody may write
  std::vector<unsigned char>
      written;       // by byte, in this threadgroup's memory
  unsigned site = 0; // of a `threadgroup` variable
  unsigned long extents[3] = {};

  bool is_threadgroup() const { return variables.front().space == Space::threadgroup; }

  // The variable that an access means: one that holds the address, writable for a write.
  const Variable& variable_at(const char* address, bool write) const {
    const Variable* best = &variables.front();
    int best_score = -1;
    for (const Variable& variable : variables) {
      const bool holds = address >= variable.begin && address < variable.end;
      const int score = 2 * holds + (variable.writable == write);
      if (score > best_score) {
        best = &variable;
        best_score = score;
      }
    }
    return *best;
  }
};

class GuardedMemory {
 public:
  // Copies of a dispatch's buffers.
  explicit GuardedMemory(const Dispatch& dispatch) {
    std::size_t largest = 0;
    for (unsigned i = 0; i < dispatch.buffer_count; ++i) {
      largest = std::max<std::size_t>(largest, dispatch.sanitized[i].bytes);
    }
    while ((std::size_t{1} << (shift_ - 2)) < largest)
      ++shift_;
    memory_ = LazyMemory(max_regions << shift_);
    regions_.reserve(max_regions);
    if (!memory_.begin()) return;
    addresses_.resize(dispatch.buffer_count + 1);
    for (const auto& together : sharing(dispatch))
      add_buffers(dispatch, together);
    for (unsigned i = 0; i < dispatch.buffer_count; ++i)
      point_to_copies(dispatch.sanitized[i], static_cast<char*>(addresses_[i]));
  }

  explicit operator bool() const { return memory_.begin() != nullptr; }
  void* const* addresses() const { return addresses_.data(); }

  // Whether an address is among what addresses() gives to kernels.
  bool holds_addresses(const void* address) const {
    return address >= addresses_.data() && address < addresses_.data() + addresses_.size();
  }

  // Whether a `threadgroup` variable has as many elements in one of its dimensions.
  bool has_threadgroup_extent(unsigned long extent) const {
    return std::any_of(regions_.begin(), regions_.end(), [=](const Region& region) {
      return region.is_threadgroup() &&
             std::count(std::begin(region.extents), std::end(region.extents), extent) > 0;
    });
  }

  // The region whose neighbourhood holds an address; null for what is no variable of a kernel's.
  Region* region_of(const void* address) {
    const auto offset =
        static_cast<std::size_t>(static_cast<const char*>(address) - memory_.begin());
    const std::size_t index = offset >> shift_;
    return offset < memory_.size() && index < regions_.size() ? &regions_[index] : nullptr;
  }

  // The place of a `threadgroup` variable, made when it is first asked for; null when there are
  // too many.
  Region* threadgroup_variable(const ThreadgroupVariable& declared) {
    for (Region& region : regions_) {
      if (region.is_threadgroup() && region.site == declared.site) return &region;
    }
    if (regions_.size() == max_regions) return nullptr;
    char* begin = middle();
    char* end = begin + declared.bytes;
    Region& region = regions_.emplace_back();
    region.begin = begin;
    region.end = end;
    region.writable = true;
    region.site = declared.site;
    std::copy_n(declared.extents, 3, region.extents);
    region.variables.push_back(
        {declared.name, Space::threadgroup, begin, end, declared.element_bytes, true, nullptr});
    region.shadow = Shadow(declared.bytes, std::min(declared.alignment, 4u));
    return &region;
  }

  // The memory of a new threadgroup is undefined.
  void forget_threadgroup_memory() {
    for (Region& region : regions_) {
      if (!region.is_threadgroup()) continue;
      std::memset(region.begin, poison, static_cast<std::size_t>(region.end - region.begin));
      region.written.assign(static_cast<std::size_t>(region.end - region.begin), false);
    }
  }

  void copy_back() {
    for (const Region& region : regions_) {
      if (!region.written_to || region.is_threadgroup()) continue;
      const auto first = std::min_element(
          region.variables.begin(), region.variables.end(),
          [](const Variable& a, const Variable& b) { return a.begin < b.begin; });
      std::memcpy(
          first->original, region.begin, static_cast<std::size_t>(region.end - region.begin));
    }
  }

 private:
  static constexpr std::size_t max_regions = 128;
  static constexpr std::size_t page = 4096;

  // Indices of buffers that overlap, directly or through others.
  static std::vector<std::vector<unsigned>> sharing(const Dispatch& dispatch) {
    std::vector<unsigned> order(dispatch.buffer_count);
    for (unsigned i = 0; i < order.size(); ++i)
      order[i] = i;
    const auto address = [&](unsigned i) {
      return static_cast<char*>(dispatch.sanitized[i].address);
    };
    std::stable_sort(order.begin(), order.end(), [&](unsigned a, unsigned b) {
      return address(a) < address(b);
    });
    std::vector<std::vector<unsigned>> groups;
    const char* end = nullptr;
    for (unsigned i : order) {
      if (groups.empty() || address(i) >= end) groups.emplace_back();
      groups.back().push_back(i);
      end = std::max<const char*>(end, address(i) + dispatch.sanitized[i].bytes);
    }
    return groups;
  }

  void add_buffers(const Dispatch& dispatch, const std::vector<unsigned>& together) {
    char* original = static_cast<char*>(dispatch.sanitized[together.front()].address);
    // As far into a page as the original, so that it is aligned alike.
    char* begin = middle() + reinterpret_cast<std::uintptr_t>(original) % page;
    Region& region = regions_.emplace_back();
    region.begin = region.end = begin;
    unsigned scalar_bytes = 4;
    for (unsigned i : together) {
      const Buffer& buffer = dispatch.sanitized[i];
      char* at = static_cast<char*>(buffer.address);
      char* copy = begin + (at - original);
      addresses_[i] = copy;
      region.end = std::max(region.end, copy + buffer.bytes);
      region.writable |= buffer.writable;
      scalar_bytes = std::min(scalar_bytes, buffer.scalar_bytes);
      region.variables.push_back(
          {buffer.name, buffer.writable ? Space::device : Space::constant, copy,
           copy + buffer.bytes, buffer.element_bytes, buffer.writable, at});
      std::memcpy(copy, at, buffer.bytes);
    }
    if (region.writable) {
      region.shadow = Shadow(static_cast<std::size_t>(region.end - begin) + page, scalar_bytes);
    }
  }

  // Pointers in a copy that nobody writes, to buffers: to their copies from now on.
  void point_to_copies(const Buffer& holder, char* copy) {
    constexpr std::size_t step = sizeof(char*);
    if (!holder.may_hold_addresses || region_of(copy)->writable) return;
    for (std::size_t at = 0; at + step <= holder.bytes; at += step) {
      const char* pointer;
      std::memcpy(&pointer, copy + at, step);
      if (const char* moved = copy_of(pointer)) std::memcpy(copy + at, &moved, step);
    }
  }

  // Where the copy of what an argument's address points to is; null for other addresses.
  const char* copy_of(const char* original) const {
    for (const Region& region : regions_) {
      for (const Variable& variable : region.variables) {
        const long offset = original - variable.original;
        if (offset >= 0 && offset < variable.end - variable.begin) return variable.begin + offset;
      }
    }
    return nullptr;
  }

  char* middle() const {
    return memory_.begin() + (regions_.size() << shift_) + (std::size_t{1} << (shift_ - 1));
  }

  // Wide enough for whatever a 32-bit index reaches from the middle, in elements of 4 bytes.
  unsigned shift_ = 35;
  LazyMemory memory_;
  std::vector<Region> regions_;
  std::vector<void*> addresses_;
};

} // namespace
