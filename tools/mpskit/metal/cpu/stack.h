// Stacks of fibers, and the switch between them.
#pragma once

#include <cstddef>

#include <sys/mman.h>

// Context switch: saves what a call must preserve on the current stack, stores the stack pointer
// to *from, and goes on where `to` was stored.
extern "C" void mpskit_switch_stack(void** from, void* to);
extern "C" char mpskit_switch_stack_end[]; // behind its last instruction

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
    // A return would be predicted to go where this was called from.
    "  popq %rcx\n  jmp *%rcx\n"
    ".globl " MPSKIT_SYMBOL(mpskit_switch_stack_end) "\n"
    MPSKIT_SYMBOL(mpskit_switch_stack_end) ":\n");
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
    "  ret\n"
    ".globl " MPSKIT_SYMBOL(mpskit_switch_stack_end) "\n"
    MPSKIT_SYMBOL(mpskit_switch_stack_end) ":\n");
constexpr int saved_words = 20;
constexpr int return_slot = 11; // x30
#else
#error "mpskit's cpu backend switches stacks on x86-64 and arm64 only"
#endif

namespace {

constexpr std::size_t stack_bytes = 256 * 1024; // of address space; pages are taken when touched
constexpr std::size_t guard_bytes = 64 * 1024;

// False where the system gives no memory.
struct Stack {
  Stack() {
    void* memory = mmap(
        nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    mprotect(memory, guard_bytes, PROT_NONE); // an overflow faults and damages no neighbour
    base = static_cast<char*>(memory);
  }
  Stack(const Stack&) = delete;
  ~Stack() {
    if (base) munmap(base, size);
  }

  explicit operator bool() const {
    return base != nullptr;
  }

  void** top() const {
    return reinterpret_cast<void**>(base + size);
  }
  bool guards(const void* address) const {
    return address >= base && address < base + guard_bytes;
  }
  bool holds(const void* address) const {
    return address >= base + guard_bytes && address < base + size;
  }

  static constexpr std::size_t size = guard_bytes + stack_bytes;
  char* base = nullptr;
};

} // namespace
