"""Section 6.15: atomic functions on each type in each address space, alone and raced."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from msl_evaluation import HEADER
from msl_formats import INTEGERS

pytestmark = pytest.mark.conformance("6.15 Atomic functions")

RELAXED = "memory_order_relaxed"
FETCHES: dict[str, Callable[[int, int], int]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "and": lambda x, y: x & y,
    "or": lambda x, y: x | y,
    "xor": lambda x, y: x ^ y,
    "min": min,
    "max": max,
}
CASES = list(itertools.product(FETCHES, ("int", "uint"), ("device", "threadgroup")))
CASES += [(op, "float", "device") for op in ("add", "sub")]
DTYPES = {"int": np.int32, "uint": np.uint32, "float": np.float32, "bool": np.int32}
RACERS, GROUP_SIZE = 2048, 128


def name(op: str, type: str, space: str) -> str:
    return f"{op}_{type}_{space}"


def typed(template: str, type: str) -> str:
    """The template with its T made a type."""
    return template.replace("<T>", f"<{type}>").replace("T*", f"{type}*")


def alone(op: str, type: str, space: str) -> str:
    """A kernel whose threads each do the operation on an atomic of their own."""
    before, after = "device atomic<T>* a = slots + i;", ""
    if space == "threadgroup":
        before = f"""threadgroup atomic<T> own[{GROUP_SIZE}]; threadgroup atomic<T>* a = own + i;
  atomic_store_explicit(a, atomic_load_explicit(slots + i, {RELAXED}), {RELAXED});"""
        after = f"atomic_store_explicit(slots + i, atomic_load_explicit(a, {RELAXED}), {RELAXED});"
    template = f"""
kernel void {name(op, type, space)}(device atomic<T>* slots, device T* old,
                                    constant T* operands, uint i [[thread_position_in_grid]]) {{
  {before}
  old[i] = atomic_fetch_{op}_explicit(a, operands[i], {RELAXED});
  {after}
}}
"""
    return typed(template, type)


def raced(op: str, type: str, space: str) -> str:
    """A kernel whose threads all do the operation on one atomic, or one in each threadgroup."""
    before, after = "device atomic<T>* a = slots;", ""
    if space == "threadgroup":
        before = f"""threadgroup atomic<T> own; threadgroup atomic<T>* a = &own;
  const auto start = atomic_load_explicit(slots, {RELAXED});
  if (t == 0) atomic_store_explicit(a, start, {RELAXED});
  threadgroup_barrier(mem_flags::mem_threadgroup);"""
        after = f"""threadgroup_barrier(mem_flags::mem_threadgroup);
  const auto end = atomic_load_explicit(a, {RELAXED});
  if (t == 0) atomic_store_explicit(slots + 1 + g, end, {RELAXED});"""
    template = f"""
kernel void raced_{name(op, type, space)}(
    device atomic<T>* slots, constant T* operands, uint i [[thread_position_in_grid]],
    uint t [[thread_position_in_threadgroup]], uint g [[threadgroup_position_in_grid]]) {{
  {before}
  atomic_fetch_{op}_explicit(a, operands[i], {RELAXED});
  {after}
}}
"""
    return typed(template, type)


@pytest.fixture(scope="module")
def kernels(compile_shader):
    return compile_shader(HEADER + "".join(alone(*case) + raced(*case) for case in CASES))


def operands(type: str) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of a type's edges: what atomics hold and what is done to them."""
    if type == "float":
        edges: list[float] = [0.0, 1.5, -2.25, 1e30, math.inf, 2.0**-140]
    else:
        low, high = INTEGERS[type].low, INTEGERS[type].high
        edges = sorted({low, low + 1, 0, 1, 77, high - 1, high} | ({-1, -77} if low else set()))
    pairs = np.array(list(itertools.product(edges, repeat=2)), dtype=DTYPES[type])
    return pairs[:, 0], pairs[:, 1]


def result(op: str, type: str, x: float, y: float) -> float:
    with np.errstate(all="ignore"):
        if type == "float":
            return float(np.float32(FETCHES[op](np.float32(x), np.float32(y))))
        return INTEGERS[type].wrapped(FETCHES[op](int(x), int(y)))


def as_tensor(values: np.ndarray) -> torch.Tensor:
    """As torch has it: unsigned numbers by their bits."""
    return torch.from_numpy(values.view(np.int32) if values.dtype == np.uint32 else values).clone()


def as_array(values: torch.Tensor, type: str) -> np.ndarray:
    return values.numpy().view(DTYPES[type])


@pytest.mark.parametrize(("op", "type", "space"), CASES, ids=[name(*case) for case in CASES])
def test_fetch(kernels, count, op: str, type: str, space: str) -> None:
    held, given = operands(type)
    slots, old = as_tensor(held), torch.zeros_like(as_tensor(held))
    kernel = getattr(kernels, name(op, type, space))
    kernel(slots, old, as_tensor(given), threads=len(held), group_size=GROUP_SIZE)
    expected = [result(op, type, x, y) for x, y in zip(held, given, strict=True)]
    np.testing.assert_array_equal(as_array(old, type), held)
    np.testing.assert_array_equal(as_array(slots, type), np.array(expected, DTYPES[type]))
    count(2 * len(held))


@pytest.mark.parametrize(("op", "type", "space"), CASES, ids=[name(*case) for case in CASES])
def test_raced_fetch(kernels, count, op: str, type: str, space: str) -> None:
    generator = np.random.default_rng(4)
    high = 8 if type == "float" else 2**31  # sums of small integers are exact in any order
    given = generator.integers(0, high, RACERS).astype(DTYPES[type])
    groups = RACERS // GROUP_SIZE
    start = np.full(1 + groups, 12345, DTYPES[type])
    slots = as_tensor(start)
    kernel = getattr(kernels, f"raced_{name(op, type, space)}")
    kernel(slots, as_tensor(given), threads=RACERS, group_size=GROUP_SIZE)
    got = as_array(slots, type).tolist()
    teams = given.reshape(groups, -1) if space == "threadgroup" else given.reshape(1, -1)
    expected = []
    for team in teams:
        value: float = 12345
        for operand in team:
            value = result(op, type, value, operand)
        expected.append(value)
    assert (got[1:] if space == "threadgroup" else got[:1]) == expected
    count(len(expected))


# ---- loads, stores, exchanges ----

EXCHANGED = ["int", "uint", "bool", "float"]


@pytest.fixture(scope="module")
def exchanges(compile_shader):
    template = """
kernel void exchange_T(device atomic<T>* slots, device T* seen, constant T* given,
                       uint i [[thread_position_in_grid]]) {
  threadgroup atomic<T> own[GROUP];
  seen[4 * i] = atomic_load_explicit(slots + i, memory_order_relaxed);
  seen[4 * i + 1] = atomic_exchange_explicit(slots + i, given[i], memory_order_relaxed);
  atomic_store_explicit(own + i, given[i], memory_order_relaxed);
  const volatile threadgroup atomic<T>* reader = own + i;
  seen[4 * i + 2] = atomic_load_explicit(reader, memory_order_relaxed);
  seen[4 * i + 3] = atomic_exchange_explicit(own + i, seen[4 * i], memory_order_relaxed);
}
kernel void compare_T(device atomic<T>* slots, device T* seen, device uchar* won,
                      constant T* expected, constant T* desired,
                      uint i [[thread_position_in_grid]]) {
  T e = expected[i];
  bool swapped = false;
  // A weak exchange may fail though the values are the same.
  for (int tries = 0; tries < 100 && !swapped && as_type<BITS>(e) == as_type<BITS>(expected[i]);
       ++tries)
    swapped = atomic_compare_exchange_weak_explicit(slots + i, &e, desired[i],
                                                    memory_order_relaxed, memory_order_relaxed);
  won[i] = swapped;
  seen[i] = e;
}
"""
    return compile_shader(
        HEADER
        + "".join(
            typed(template, type)
            .replace("BITS", "uchar" if type == "bool" else "uint")
            .replace("GROUP", str(GROUP_SIZE))
            .replace("_T(", f"_{type}(")
            .replace("T e", f"{type} e")
            for type in EXCHANGED
        )
    )


def values_of(type: str) -> list[float]:
    return {
        "int": [0, 1, -1, 2**31 - 1, -(2**31)],
        "uint": [0, 1, 2**32 - 1, 2**31],
        "bool": [0, 1],
        "float": [0.0, -0.0, 1.5, math.inf, math.nan],
    }[type]


def plain(values: list[float], type: str) -> torch.Tensor:
    """An array of the type itself; a bool has one byte."""
    if type == "bool":
        return torch.tensor(values, dtype=torch.uint8)
    return as_tensor(np.array(values, dtype=DTYPES[type]))


def bits(tensor: torch.Tensor) -> list[int]:
    return (tensor.view(torch.int32) if tensor.dtype == torch.float else tensor).tolist()


@pytest.mark.parametrize("type", EXCHANGED)
def test_load_store_exchange(exchanges, count, type: str) -> None:
    held, given = zip(*itertools.product(values_of(type), repeat=2), strict=True)
    slots = as_tensor(np.array(held, dtype=DTYPES[type]))
    seen = plain([0] * (4 * len(held)), type)
    getattr(exchanges, f"exchange_{type}")(
        slots, seen, plain(list(given), type), threads=len(held), group_size=GROUP_SIZE
    )
    own, other = bits(plain(list(held), type)), bits(plain(list(given), type))
    rows = [bits(seen)[at::4] for at in range(4)]
    assert rows == [own, own, other, other]
    assert bits(slots) == bits(as_tensor(np.array(given, dtype=DTYPES[type])))
    count(5 * len(held))


@pytest.mark.parametrize("type", EXCHANGED)
def test_compare_exchange_goes_by_bits(exchanges, count, type: str) -> None:
    held, expected = zip(*itertools.product(values_of(type), repeat=2), strict=True)
    desired = [values_of(type)[1]] * len(held)
    slots = as_tensor(np.array(held, dtype=DTYPES[type]))
    seen, won = plain([0] * len(held), type), torch.zeros(len(held), dtype=torch.uint8)
    getattr(exchanges, f"compare_{type}")(
        slots, seen, won, plain(list(expected), type), plain(desired, type), threads=len(held)
    )
    same = [
        a == b
        for a, b in zip(
            bits(plain(list(held), type)), bits(plain(list(expected), type)), strict=True
        )
    ]
    assert won.tolist() == same
    assert bits(seen) == bits(plain(list(held), type))
    after = [d if s else h for h, d, s in zip(held, desired, same, strict=True)]
    assert bits(slots) == bits(as_tensor(np.array(after, dtype=DTYPES[type])))
    count(3 * len(held))


# ---- 64 bits, tickets, fences ----

OTHERS = """
kernel void extremes(device atomic_ulong* low, device atomic_ulong* high, constant ulong* given,
                     uint i [[thread_position_in_grid]]) {
  atomic_min_explicit(low, given[i], memory_order_relaxed);
  atomic_max_explicit(high, given[i], memory_order_relaxed);
}
kernel void tickets(device atomic_uint& next, device uint* drawn,
                    uint i [[thread_position_in_grid]]) {
  drawn[i] = atomic_fetch_add_explicit(&next, 1u, memory_order_relaxed);
}
kernel void steps(device atomic_uint& value, device atomic_uint* failures) {
  uint seen = atomic_load_explicit(&value, memory_order_relaxed);
  while (!atomic_compare_exchange_weak_explicit(&value, &seen, seen * 3 + 1,
                                                memory_order_relaxed, memory_order_relaxed))
    atomic_fetch_add_explicit(failures, 1u, memory_order_relaxed);
}
// The threadgroup that comes last sums what all have written.
kernel void last(device uint* parts, device atomic_uint& arrived, device uint& total,
                 uint t [[thread_position_in_threadgroup]], uint g [[threadgroup_position_in_grid]],
                 uint groups [[threadgroups_per_grid]]) {
  threadgroup uint is_last;
  if (t == 0) {
    parts[g] = g + 1;
    atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
    is_last = atomic_fetch_add_explicit(&arrived, 1u, memory_order_relaxed) == groups - 1;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (is_last && t == 0) {
    atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
    for (uint i = 0; i < groups; ++i) total += parts[i];
  }
}
kernel void fences(device uint* out) {
  atomic_thread_fence(mem_flags::mem_none, memory_order_relaxed);
  atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst);
  atomic_thread_fence(mem_flags::mem_threadgroup, memory_order_seq_cst, thread_scope_threadgroup);
  atomic_thread_fence(mem_flags::mem_texture, memory_order_seq_cst, thread_scope_simdgroup);
  atomic_thread_fence(mem_flags::mem_device | mem_flags::mem_threadgroup, memory_order_seq_cst,
                      thread_scope_thread);
  *out = 1;
}
"""


@pytest.fixture(scope="module")
def others(compile_shader):
    return compile_shader(HEADER + OTHERS)


def test_64_bit_extremes(others, count) -> None:
    given = np.random.default_rng(1).integers(0, 2**64, RACERS, np.uint64)
    low, high = torch.full((1,), -1, dtype=torch.long), torch.zeros(1, dtype=torch.long)
    others.extremes(low, high, torch.from_numpy(given.view(np.int64)), threads=RACERS)
    assert low.item() % 2**64 == given.min() and high.item() % 2**64 == given.max()
    count(2)


def test_every_thread_draws_another_ticket(others, count) -> None:
    counter, drawn = torch.zeros(1, dtype=torch.int), torch.zeros(RACERS, dtype=torch.int)
    others.tickets(counter, drawn, threads=RACERS, group_size=GROUP_SIZE)
    assert sorted(drawn.tolist()) == list(range(RACERS)) and counter.item() == RACERS
    count(RACERS)


def test_compare_exchange_loop(others, count) -> None:
    value, failures = torch.zeros(1, dtype=torch.int), torch.zeros(1, dtype=torch.int)
    others.steps(value, failures, threads=RACERS, group_size=GROUP_SIZE)
    expected = 0
    for _ in range(RACERS):
        expected = (expected * 3 + 1) % 2**32
    assert value.item() % 2**32 == expected
    count(1)


def test_fence_orders_what_the_last_threadgroup_reads(others, count) -> None:
    groups = 50
    parts = torch.zeros(groups, dtype=torch.int)
    arrived, total = torch.zeros(1, dtype=torch.int), torch.zeros(1, dtype=torch.int)
    others.last(parts, arrived, total, threads=64 * groups, group_size=64)
    assert total.item() == groups * (groups + 1) // 2
    count(1)


def test_fences_of_every_kind(others, count) -> None:
    out = torch.zeros(1, dtype=torch.int)
    others.fences(out, threads=1)
    assert out.item() == 1
    count(1)
