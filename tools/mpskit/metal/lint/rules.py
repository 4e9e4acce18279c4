"""The lint's rules: their names, how much they weigh, and why they are there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mpskit.metal.frontend.structure import Program


@dataclass(frozen=True)
class Finding:
    """A rule broken at a token."""

    rule: str
    index: int
    message: str


Check = Callable[[Program], Iterator[Finding]]
"""Finds what breaks some rules in a program."""


@dataclass(frozen=True)
class Rule:
    """What a name in brackets behind a message means.

    ``severity`` is error for what Apple's compiler refuses or mpskit cannot run, warning for what
    compiles and is likely wrong.
    """

    name: str
    severity: str
    explanation: str


RULES = {
    rule.name: rule
    for rule in (
        Rule(
            "address-space",
            "error",
            "Metal has no generic address space: every pointer and reference says where it points. "
            "Write device, constant, threadgroup or thread in front of the type. What lies in one "
            "space cannot be reached through a pointer to another.",
        ),
        Rule(
            "double",
            "error",
            "Apple GPUs have no 64-bit floating point. Use float; for sums that need more, "
            "compensate (Kahan) or split into a pair of floats.",
        ),
        Rule(
            "write-to-constant",
            "error",
            "The constant address space is read-only. Take a device pointer to write through, or "
            "copy the value into a thread variable first.",
        ),
        Rule(
            "threadgroup-memory",
            "error",
            "A threadgroup has 32 KB of memory for all variables of a kernel. Use smaller tiles, a "
            "smaller type, or one array for what is not needed at the same time.",
        ),
        Rule(
            "buffer-index",
            "error",
            "A kernel's argument table has buffers 0 to 30, one argument in each. Put several "
            "small arguments into one struct.",
        ),
        Rule(
            "kernel-parameter",
            "error",
            "A kernel's value parameter is filled by the GPU: it needs an attribute such as "
            "[[thread_position_in_grid]]. Values from the host come through constant T&.",
        ),
        Rule(
            "kernel-return",
            "error",
            "The host cannot take a value back. Return void, and write the result to a buffer.",
        ),
        Rule(
            "recursion",
            "error",
            "Metal functions have no call stack that could grow: a call cycle is refused. Write a "
            "loop, or recurse over template arguments, which ends when compiling.",
        ),
        Rule("goto", "error", "Metal has no goto. Use loops, or a function with early returns."),
        Rule(
            "variable-length-array",
            "error",
            "An array's length is fixed when compiling. Use a template parameter or a constant, or "
            "threadgroup memory whose length the host gives.",
        ),
        Rule(
            "exception",
            "error",
            "Metal has no exceptions. Return a status, or write one to a device buffer.",
        ),
        Rule(
            "virtual",
            "error",
            "Metal has no virtual functions. Make the type a template parameter.",
        ),
        Rule(
            "new-delete",
            "error",
            "Metal has no heap. Use arrays of fixed length, or a buffer from the host.",
        ),
        Rule("rtti", "error", "Metal has no typeid and no dynamic_cast. Use templates and traits."),
        Rule(
            "thread-local",
            "error",
            "Metal has no thread_local. Variables of a function are each thread's own anyway.",
        ),
        Rule(
            "inline-assembly",
            "error",
            "Metal has no inline assembly. Use the library's functions, such as simd_* and "
            "extract_bits.",
        ),
        Rule(
            "kernel-call",
            "error",
            "A kernel is called by the host only. Move what both need into an ordinary function.",
        ),
        Rule(
            "texture",
            "error",
            "mpskit runs kernels on buffers: textures, samplers, ray tracing and other functions "
            "of the graphics pipeline are out of its scope. Keep them in a file of their own.",
        ),
        Rule(
            "tensor",
            "error",
            "mpskit runs kernels on buffers: Metal 4's tensors and MetalPerformancePrimitives are "
            "out of its scope. Keep them in a file of their own.",
        ),
        Rule(
            "program-scope-variable",
            "error",
            "A variable at program scope lives in the constant address space: write constant T x "
            "= value. What kernels change belongs into a buffer or a kernel's own variables; a "
            "threadgroup variable is declared in the kernel.",
        ),
        Rule(
            "host-name",
            "warning",
            "The host finds an instantiation by its host name only, for its own is mangled. Write "
            'template [[host_name("name")]] [[kernel]] void f<T>(…).',
        ),
        Rule(
            "fast-math",
            "warning",
            "fast:: functions lose up to several units in the last place at each call, and ignore "
            "NaN and infinities; in a loop or a sum that compounds. Use precise::, or the plain "
            "name.",
        ),
        Rule(
            "divergent-simd",
            "warning",
            "A simd_ or quad_ function joins the active lanes only. In a branch or loop that some "
            "lanes leave out, and after they returned, their values are missing. Call it where all "
            "lanes come, with a neutral value from those that have nothing to add.",
        ),
        Rule(
            "index-overflow",
            "warning",
            "The product is computed in 32 bits and widened afterwards: beyond 2^32 it has lost "
            "its upper half. Widen a factor first: static_cast<ulong>(a) * b.",
        ),
        Rule(
            "missing-barrier",
            "warning",
            "Another thread's write to threadgroup memory is seen only behind a barrier. Put "
            "threadgroup_barrier(mem_flags::mem_threadgroup) between the write and the read.",
        ),
    )
}
