"""Table 5.8: what each kernel attribute gives in grids whose last threadgroups are smaller."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import pytest
import torch
from msl_evaluation import HEADER

pytestmark = pytest.mark.conformance("5.2 Kernel attributes")

Extent = tuple[int, int, int]
WIDTH, QUAD = 32, 4


@dataclass(frozen=True)
class Place:
    """A thread of a dispatch: its threadgroup, its place there, and the threadgroup's own size."""

    grid: Extent
    dispatched: Extent
    group: Extent
    thread: Extent

    @property
    def actual(self) -> Extent:
        """The threadgroup's size, smaller than dispatched at the grid's ends."""
        sizes = zip(self.grid, self.dispatched, self.group, strict=True)
        return tuple(min(size, extent - group * size) for extent, size, group in sizes)  # type: ignore[return-value]

    @property
    def position(self) -> Extent:
        places = zip(self.group, self.dispatched, self.thread, strict=True)
        return tuple(group * size + thread for group, size, thread in places)  # type: ignore[return-value]

    @property
    def groups(self) -> Extent:
        return tuple(-(-n // size) for n, size in zip(self.grid, self.dispatched, strict=True))  # type: ignore[return-value]

    @property
    def index(self) -> int:
        """In the threadgroup, x first."""
        x, y, z = self.thread
        return x + self.actual[0] * (y + self.actual[1] * z)


def places(grid: Extent, size: Extent) -> list[Place]:
    """Every thread of a dispatch, in the order of its position in the grid."""
    found = []
    for z, y, x in itertools.product(*(range(n) for n in reversed(grid))):
        group = tuple(at // n for at, n in zip((x, y, z), size, strict=True))
        thread = tuple(at % n for at, n in zip((x, y, z), size, strict=True))
        found.append(Place(grid, size, group, thread))  # type: ignore[arg-type]
    return found


VECTORS: dict[str, Callable[[Place], Extent]] = {
    "thread_position_in_grid": lambda p: p.position,
    "threads_per_grid": lambda p: p.grid,
    "thread_position_in_threadgroup": lambda p: p.thread,
    "threads_per_threadgroup": lambda p: p.actual,
    "dispatch_threads_per_threadgroup": lambda p: p.dispatched,
    "threadgroup_position_in_grid": lambda p: p.group,
    "threadgroups_per_grid": lambda p: p.groups,
    "grid_size": lambda p: p.grid,
    "grid_origin": lambda p: (0, 0, 0),
}
SCALARS: dict[str, Callable[[Place], int]] = {
    "thread_index_in_threadgroup": lambda p: p.index,
    "thread_index_in_simdgroup": lambda p: p.index % WIDTH,
    "thread_index_in_quadgroup": lambda p: p.index % QUAD,
    "simdgroup_index_in_threadgroup": lambda p: p.index // WIDTH,
    "quadgroup_index_in_threadgroup": lambda p: p.index // QUAD,
    "simdgroups_per_threadgroup": lambda p: -(-prod(p.actual) // WIDTH),
    "quadgroups_per_threadgroup": lambda p: -(-prod(p.actual) // QUAD),
    "dispatch_simdgroups_per_threadgroup": lambda p: -(-prod(p.dispatched) // WIDTH),
    "dispatch_quadgroups_per_threadgroup": lambda p: -(-prod(p.dispatched) // QUAD),
    "threads_per_simdgroup": lambda p: WIDTH,
    "thread_execution_width": lambda p: WIDTH,
}
DISPATCHES: list[tuple[Extent, Extent]] = [
    ((7, 5, 3), (4, 3, 2)),
    ((40, 3, 1), (16, 2, 1)),
    ((100, 1, 1), (64, 1, 1)),
    ((1, 9, 5), (1, 4, 2)),
    ((3, 3, 3), (8, 4, 4)),
]
TYPES = ["uint", "ushort"]
STAGE_IN = "reads the region of stage-in data, which a dispatch without any does not set"


def vector_kernel(type: str, components: int) -> str:
    """A kernel that has every vector attribute as a scalar or a vector of that many components."""
    n = f"{components}" if components > 1 else ""
    position, grid = "thread_position_in_grid", "threads_per_grid"
    index = {
        1: position,
        2: f"{position}.x + {grid}.x * {position}.y",
        3: f"{position}.x + {grid}.x * ({position}.y + {grid}.y * {position}.z)",
    }[components]
    parameters = "".join(f",\n    {type}{n} {name} [[{name}]]" for name in VECTORS)
    rows = "".join(
        f"  out[i * {len(VECTORS)} + {k}].{'xyz'[:components]} = uint{n}({name});\n"
        for k, name in enumerate(VECTORS)
    )
    return (
        f"kernel void vectors_{type}_{components}(device uint3* out{parameters}) {{\n"
        f"  const uint i = {index};\n{rows}}}\n"
    )


def scalar_kernel(type: str) -> str:
    """A kernel that has every scalar attribute."""
    parameters = "".join(f",\n    {type} {name} [[{name}]]" for name in SCALARS)
    rows = "".join(f"  out[i * {len(SCALARS)} + {k}] = {n};\n" for k, n in enumerate(SCALARS))
    return (
        f"kernel void scalars_{type}(device uint* out, uint3 at [[thread_position_in_grid]],\n"
        f"    uint3 grid [[threads_per_grid]]{parameters}) {{\n"
        f"  const uint i = at.x + grid.x * (at.y + grid.y * at.z);\n{rows}}}\n"
    )


@pytest.fixture(scope="module")
def kernels(compile_shader):
    vectors = (vector_kernel(type, n) for type in TYPES for n in (1, 2, 3))
    return compile_shader("".join([HEADER, *vectors, *map(scalar_kernel, TYPES)]))


@pytest.fixture(scope="module")
def dispatched(kernels) -> Callable[[str, int, int], torch.Tensor]:
    known: dict[tuple[str, int], torch.Tensor] = {}

    def launch(name: str, dispatch: int, columns: int) -> torch.Tensor:
        if (name, dispatch) not in known:
            grid, size = DISPATCHES[dispatch]
            out = torch.full((prod(grid), columns), -1, dtype=torch.int)
            getattr(kernels, name)(out, threads=grid, group_size=size)
            known[name, dispatch] = out
        return known[name, dispatch]

    return launch


IDS = ["x".join(map(str, grid)) for grid, _ in DISPATCHES]


@pytest.mark.parametrize(
    ("components", "dispatch"),
    [(3, dispatch) for dispatch in range(len(DISPATCHES))] + [(2, 1), (1, 2)],
    ids=[*IDS, "2d", "1d"],
)
@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("name", VECTORS)
def test_vector_attribute(
    dispatched, differs, count, name: str, type: str, components: int, dispatch: int
) -> None:
    if name == "grid_size":
        differs("mps", STAGE_IN, strict=False)
    out = dispatched(f"vectors_{type}_{components}", dispatch, 4 * len(VECTORS))
    column = out.reshape(-1, len(VECTORS), 4)[:, list(VECTORS).index(name), :components]
    all_places = places(*DISPATCHES[dispatch])
    assert column.tolist() == [list(VECTORS[name](place)[:components]) for place in all_places]
    count(column.numel())


@pytest.mark.parametrize("dispatch", range(len(DISPATCHES)), ids=IDS)
@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("name", SCALARS)
def test_scalar_attribute(dispatched, count, name: str, type: str, dispatch: int) -> None:
    out = dispatched(f"scalars_{type}", dispatch, len(SCALARS))
    rows = out[:, list(SCALARS).index(name)].tolist()
    assert rows == [SCALARS[name](place) for place in places(*DISPATCHES[dispatch])]
    count(len(rows))
