// What is remembered of every piece of memory: who wrote it last, and who has read it since.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include <sys/mman.h>

namespace {

// An access. `time` counts the events of a dispatch that order memory: the start of a threadgroup,
// barriers, simdgroup operations. An access has the time of the last event that its thread took
// part in; 0 is none at all.
struct Stamp {
  std::uint32_t time;
  std::uint32_t pc;     // from the start of the kernel library
  std::uint16_t thread; // its index in the threadgroup
  std::uint8_t bytes;   // bit i: byte i of the cell
  bool atomic;
};

struct Cell {
  Stamp write;
  Stamp reads[2];
};

// Memory that is zero and takes no room until it is touched.
class LazyMemory {
 public:
  LazyMemory() = default;
  explicit LazyMemory(std::size_t bytes) : size_(bytes) {
    void* memory = mmap(
        nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    begin_ = memory == MAP_FAILED ? nullptr : static_cast<char*>(memory);
  }
  LazyMemory(LazyMemory&& other) noexcept : begin_(other.begin_), size_(other.size_) {
    other.begin_ = nullptr;
  }
  LazyMemory& operator=(LazyMemory&& other) noexcept {
    std::swap(begin_, other.begin_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~LazyMemory() {
    if (begin_) munmap(begin_, size_);
  }

  char* begin() const { return begin_; }
  std::size_t size() const { return size_; }

 private:
  char* begin_ = nullptr;
  std::size_t size_ = 0;
};

// The cells of one variable.
class Shadow {
 public:
  Shadow() = default;
  // `scalar_bytes`: of the smallest thing that two threads may access side by side; 1, 2 or 4.
  Shadow(std::size_t bytes, unsigned scalar_bytes)
      : cell_bytes_(scalar_bytes), memory_((bytes / scalar_bytes + 2) * sizeof(Cell)) {}

  explicit operator bool() const { return memory_.begin() != nullptr; }

  // Calls visit(cell, mask of bytes) for each cell of an access; stops when it returns false.
  template <class F>
  void visit(std::size_t offset, std::size_t bytes, F visit) {
    auto* cells = reinterpret_cast<Cell*>(memory_.begin());
    const std::size_t end = offset + bytes;
    for (std::size_t at = offset / cell_bytes_ * cell_bytes_; at < end; at += cell_bytes_) {
      unsigned mask = (1u << cell_bytes_) - 1;
      if (at < offset) mask &= mask << (offset - at);
      if (at + cell_bytes_ > end) mask &= (1u << (end - at)) - 1;
      if (!visit(cells[at / cell_bytes_], static_cast<std::uint8_t>(mask))) return;
    }
  }

 private:
  unsigned cell_bytes_ = 4;
  LazyMemory memory_;
};

} // namespace
