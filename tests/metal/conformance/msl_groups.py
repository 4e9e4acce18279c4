"""What simd_* and quad_* functions give, lane by lane: tables 6.14 to 6.18.

Both kinds of group have the same functions; an operation here is written once, for a prefix and a
number of lanes. Lanes that returned before the call take no part in it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

import numpy as np
import torch
from msl_evaluation import HEADER
from msl_formats import FloatFormat, Layout

Values = list[np.ndarray]  # a lane's value each, with the type's components
Expected = list[np.ndarray | None]  # None where the specification leaves it open


@dataclass(frozen=True)
class Operation:
    """An expression of x, of another value y and of the lane's index, and what each lane gets.

    ``expected`` takes the lanes' x, their y and whether each is active.
    """

    text: str
    expected: Callable[[Values, Values, list[bool]], Expected]
    integers_only: bool = False


@dataclass(frozen=True)
class Group:
    """A kind of group: ``simd`` or ``quad``, and its lanes."""

    prefix: str
    lanes: int

    @property
    def index(self) -> str:
        return f"thread_index_in_{self.prefix}group"


def moved(source: Callable[[int], int | None]) -> Callable[[Values, Values, list[bool]], Expected]:
    """Each lane gets the value of the lane that ``source`` names; its own where that is None."""

    def expected(x: Values, y: Values, active: list[bool]) -> Expected:
        lanes = [source(lane) for lane in range(len(x))]
        return [
            x[own] if lane is None else x[lane] if active[lane] else None
            for own, lane in enumerate(lanes)
        ]

    return expected


def filled(delta: int, modulo: int) -> Callable[[Values, Values, list[bool]], Expected]:
    """A shift by delta lanes (down when positive) in vectors of ``modulo``, y coming in."""

    def expected(x: Values, y: Values, active: list[bool]) -> Expected:
        result: Expected = []
        for lane in range(len(x)):
            first, place = lane // modulo * modulo, lane % modulo + delta
            source = first + place % modulo
            value = x[source] if 0 <= place < modulo else y[source]
            result.append(value if active[source] else None)
        return result

    return expected


def inside(lane: int, lanes: int) -> int | None:
    return lane if 0 <= lane < lanes else None


def moves(group: Group) -> list[Operation]:
    """Between lanes, of any type's values."""
    p, n = group.prefix, group.lanes
    far = n // 4 + 1
    operations = [
        Operation(
            f"{p}_shuffle(x, ushort((lane * 3 + 1) % {n}))", moved(lambda i: (i * 3 + 1) % n)
        ),
        Operation(f"{p}_broadcast(x, {n - 2})", moved(lambda i: n - 2)),
        Operation(f"{p}_broadcast_first(x)", first_active),
    ]
    for delta in (1, far):
        operations += [
            Operation(
                f"{p}_shuffle_up(x, {delta})", moved(lambda i, delta=delta: inside(i - delta, n))
            ),
            Operation(
                f"{p}_shuffle_down(x, {delta})", moved(lambda i, delta=delta: inside(i + delta, n))
            ),
            Operation(f"{p}_shuffle_xor(x, {delta})", moved(lambda i, delta=delta: i ^ delta)),
            Operation(
                f"{p}_shuffle_rotate_up(x, {delta})", moved(lambda i, delta=delta: (i - delta) % n)
            ),
            Operation(
                f"{p}_shuffle_rotate_down(x, {delta})",
                moved(lambda i, delta=delta: (i + delta) % n),
            ),
            Operation(f"{p}_shuffle_and_fill_up(x, y, {delta})", filled(-delta, n)),
            Operation(f"{p}_shuffle_and_fill_down(x, y, {delta})", filled(delta, n)),
        ]
    modulo = n // 2
    while modulo >= 2:
        operations += [
            Operation(f"{p}_shuffle_and_fill_up(x, y, 1, {modulo})", filled(-1, modulo)),
            Operation(f"{p}_shuffle_and_fill_down(x, y, 1, {modulo})", filled(1, modulo)),
        ]
        modulo //= 2
    return operations


def first_active(x: Values, y: Values, active: list[bool]) -> Expected:
    return [x[active.index(True)]] * len(x)


def combined(combine: Callable[[np.ndarray, np.ndarray], np.ndarray]):
    """The active lanes' values put together, for all of them."""

    def expected(x: Values, y: Values, active: list[bool]) -> Expected:
        return [reduce(combine, [v for v, on in zip(x, active, strict=True) if on])] * len(x)

    return expected


def scanned(
    combine: Callable[[np.ndarray, np.ndarray], np.ndarray], identity: int, inclusive: bool
):
    """The values of the active lanes before each, put together, with its own when inclusive."""

    def expected(x: Values, y: Values, active: list[bool]) -> Expected:
        total, result = np.full_like(x[0], identity), []
        for value, on in zip(x, active, strict=True):
            before = total
            total = combine(total, value) if on else total
            result.append(total if inclusive else before)
        return result

    return expected


def combinations(group: Group) -> list[Operation]:
    """Of all active lanes' values, or of those below each."""
    p = group.prefix
    return [
        Operation(f"{p}_sum(x)", combined(np.add)),
        Operation(f"{p}_product(x)", combined(np.multiply)),
        Operation(f"{p}_min(x)", combined(np.minimum)),
        Operation(f"{p}_max(x)", combined(np.maximum)),
        Operation(f"{p}_and(x)", combined(np.bitwise_and), integers_only=True),
        Operation(f"{p}_or(x)", combined(np.bitwise_or), integers_only=True),
        Operation(f"{p}_xor(x)", combined(np.bitwise_xor), integers_only=True),
        Operation(f"{p}_prefix_inclusive_sum(x)", scanned(np.add, 0, True)),
        Operation(f"{p}_prefix_exclusive_sum(x)", scanned(np.add, 0, False)),
        Operation(f"{p}_prefix_inclusive_product(x)", scanned(np.multiply, 1, True)),
        Operation(f"{p}_prefix_exclusive_product(x)", scanned(np.multiply, 1, False)),
    ]


TYPES = [
    "char",
    "uchar",
    "short",
    "ushort",
    "int",
    "uint",
    "half",
    "float",
    "float2",
    "half4",
    "int3",
]
MOVED_ONLY = ["bfloat"]
MASKS = [0xFFFFFFFF, 0x0F0F3F71, 0xFFFF0000, 0x00000020, 0x7FFFFFFE]
THREADS, GROUP_SIZE = (
    109,
    64,
)  # the last threadgroup ends inside a simdgroup, the simdgroup in a quad


def operations(group: Group, type: str) -> list[Operation]:
    """The operations that a type has."""
    if type in MOVED_ONLY:
        return moves(group)
    is_float = isinstance(Layout.of(type).scalar, FloatFormat)
    return moves(group) + [o for o in combinations(group) if not (is_float and o.integers_only)]


def cases(group: Group) -> list[tuple[str, str]]:
    """Each operation's text with each type that has it."""
    return [(o.text, type) for type in TYPES + MOVED_ONLY for o in operations(group, type)]


def source(group: Group) -> str:
    kernels = [HEADER]
    for type in TYPES + MOVED_ONLY:
        rows = "".join(
            f"  out[{k} * threads + i] = {o.text};\n" for k, o in enumerate(operations(group, type))
        )
        kernels.append(
            f"kernel void on_{type}(device {type}* out, constant {type}* xs, constant {type}* ys,\n"
            "    constant uint& mask, constant uint& threads, uint i [[thread_position_in_grid]],\n"
            f"    uint simd_lane [[thread_index_in_simdgroup]], uint lane [[{group.index}]]) {{\n"
            "  if (!(mask >> simd_lane & 1)) return;\n"
            f"  const {type} x = xs[i], y = ys[i];\n{rows}}}\n"
        )
    return "".join(kernels)


def inputs(type: str) -> np.ndarray:
    """Two values a thread: integers of any size, floats whose sums and products are exact."""
    layout = Layout.of(type)
    generator = np.random.default_rng(12)
    shape = (2, THREADS, *(layout.shape or (1,)))
    if isinstance(layout.scalar, FloatFormat):
        return generator.choice([-2.0, -1, -0.5, 0.5, 1, 2], shape)
    info = np.iinfo(layout.scalar.storage)
    return generator.integers(info.min, info.max, shape, layout.scalar.storage, endpoint=True)


def stored(values: np.ndarray, type: str) -> torch.Tensor:
    """An array of the type, a 3-vector with its padding."""
    layout = Layout.of(type)
    scalar = layout.scalar
    padded = np.zeros((len(values), layout.size // scalar.size), values.dtype)
    padded[:, : values.shape[1]] = values
    data = scalar.encode(padded) if isinstance(scalar, FloatFormat) else padded
    return torch.from_numpy(np.array(data).view(np.uint8).reshape(-1)).clone()


def launch(library: object, group: Group, type: str, mask: int) -> dict[str, list[np.ndarray]]:
    """The results of each operation, a thread each."""
    layout = Layout.of(type)
    table = operations(group, type)
    out = torch.full((len(table) * THREADS * layout.size,), 0xA5, dtype=torch.uint8)
    x, y = (stored(values, type) for values in inputs(type))
    kernel = getattr(library, f"on_{type}")
    as_uint = np.uint32(mask).view(np.int32).item()
    kernel(
        out, x, y, as_uint, THREADS, threads=THREADS, group_size=GROUP_SIZE,
        arg_casts={3: "int32", 4: "int32"},
    )  # fmt: skip
    rows = out.numpy().reshape(len(table), THREADS, layout.size)
    return {
        o.text: [layout.decode(value).reshape(-1) for value in row]
        for o, row in zip(table, rows, strict=True)
    }


def groups(group: Group) -> list[range]:
    """The threads of each group of lanes."""
    return [
        range(first, min(first + group.lanes, end))
        for start in range(0, THREADS, GROUP_SIZE)
        for end in [min(start + GROUP_SIZE, THREADS)]
        for first in range(start, end, group.lanes)
    ]


def active_lanes(group: Group, threads: range, mask: int) -> list[bool]:
    """Whether each lane of a group, which may have fewer threads, takes part."""
    lanes = [(threads.start % GROUP_SIZE + lane) % 32 for lane in range(group.lanes)]
    return [bool(mask >> lane & 1) and place < len(threads) for place, lane in enumerate(lanes)]


def compare(
    results: list[np.ndarray], operation: Operation, group: Group, type: str, mask: int
) -> int:
    """Checks an operation's results and counts the values compared."""
    compared = 0
    xs, ys = inputs(type)
    padding = group.lanes
    with np.errstate(over="ignore"):
        for threads in groups(group):
            active = active_lanes(group, threads, mask)
            if not any(active):
                continue
            x = [xs[min(threads.start + i, THREADS - 1)] for i in range(padding)]
            y = [ys[min(threads.start + i, THREADS - 1)] for i in range(padding)]
            expected = operation.expected(x, y, active)
            for lane, thread in enumerate(threads):
                if active[lane] and expected[lane] is not None:
                    assert (results[thread] == expected[lane]).all(), (
                        operation.text, hex(mask), thread, results[thread], expected[lane],
                    )  # fmt: skip
                    compared += expected[lane].size
    return compared


def votes(group: Group) -> dict[str, Callable[[list[bool], list[bool], int], int]]:
    """Expressions of `aye`, and what a lane gets given the lanes' ayes and which are active."""
    p, n = group.prefix, group.lanes

    def bits(lanes: list[bool]) -> int:
        return sum(1 << i for i, on in enumerate(lanes) if on)

    def both(ayes: list[bool], active: list[bool]) -> list[bool]:
        return [a and b for a, b in zip(ayes, active, strict=True)]

    low = f"((1ul << {n}) - 1)"  # the top bits of a vote are undefined
    return {
        f"ulong({p}_ballot(aye)) & {low}": lambda ayes, active, lane: bits(both(ayes, active)),
        f"ulong({p}_active_threads_mask()) & {low}": lambda ayes, active, lane: bits(active),
        f"ulong({p}_all(aye))": lambda ayes, active, lane: both(ayes, active) == active,
        f"ulong({p}_any(aye))": lambda ayes, active, lane: any(both(ayes, active)),
        f"ulong({p}_is_first())": lambda ayes, active, lane: active.index(True) == lane,
        f"ulong({p}_ballot(aye).all())": lambda ayes, active, lane: all(both(ayes, active)),
        f"ulong({p}_ballot(aye).any())": lambda ayes, active, lane: any(both(ayes, active)),
        f"ulong({p}_all(true))": lambda ayes, active, lane: 1,
        f"ulong({p}_any(false))": lambda ayes, active, lane: 0,
        f"ulong({p}_vote({p}_vote::vote_t(5)).any())": lambda ayes, active, lane: 1,
        f"ulong({p}_vote().any())": lambda ayes, active, lane: 0,
    }


def vote_source(group: Group) -> str:
    rows = "".join(f"  out[{k} * threads + i] = {text};\n" for k, text in enumerate(votes(group)))
    return (
        f"{HEADER}kernel void cast(device ulong* out, constant uint& mask,\n"
        "    constant uint& threads, constant uchar* ayes, uint i [[thread_position_in_grid]],\n"
        "    uint simd_lane [[thread_index_in_simdgroup]]) {\n"
        "  if (!(mask >> simd_lane & 1)) return;\n"
        f"  const bool aye = ayes[i];\n{rows}}}\n"
    )


def cast_votes(library: object, group: Group, mask: int, ayes: list[bool]) -> list[list[int]]:
    """The results of each vote, a thread each."""
    out = torch.zeros(len(votes(group)), THREADS, dtype=torch.long)
    library.cast(
        out, np.uint32(mask).view(np.int32).item(), THREADS, torch.tensor(ayes, dtype=torch.uint8),
        threads=THREADS, group_size=GROUP_SIZE, arg_casts={1: "int32", 2: "int32"},
    )  # fmt: skip
    return out.tolist()
