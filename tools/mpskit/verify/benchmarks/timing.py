"""Microseconds of a call on a device, without what the host does around it."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch

Call = Callable[[], object]

_WARM_UP_CALLS = 3
_SAMPLES = 15
# A sample repeats the calls until it lasts this long: far above the clock's resolution.
_SAMPLE_SECONDS = {"cpu": 0.02, "cuda": 0.004, "mps": 0.02}
_MAX_CALLS_PER_SAMPLE = 2000


@dataclass(frozen=True)
class Timing:
    """Microseconds of one call: the median of the samples, and their 10th and 90th percentile."""

    median: float
    low: float
    high: float
    samples: int

    @property
    def spread(self) -> float:
        """Width of the middle 80 % of the samples, as a share of the median."""
        return (self.high - self.low) / self.median


class Repeated:
    """Calls that are alike, warmed up and ready to be timed, one after the other.

    On CUDA they are captured in a graph, so that what is timed is the device alone, as on a GPU
    that is kept busy. On the cpu and mps it is the host's clock around a batch of calls.

    Args:
        calls: on inputs of their own each, as many as it takes for those not to stay in the
            device's cache.
        device: cpu, cuda or mps.
    """

    def __init__(self, calls: Sequence[Call], device: str) -> None:
        self._calls = calls  # a graph does not keep what it works on
        self._device = device
        for _ in range(_WARM_UP_CALLS):
            for call in calls:
                call()
        _synchronize(device)
        self._run = _graph(calls) if device == "cuda" else _all(calls)
        once = max(_seconds(self._run, 1, device), 1e-7)
        wanted = int(_SAMPLE_SECONDS[device] / once) + 1
        self._runs = max(1, min(wanted, _MAX_CALLS_PER_SAMPLE // len(calls)))

    def sample(self) -> float:
        """Seconds of one call, on average over a few milliseconds."""
        return _seconds(self._run, self._runs, self._device) / (self._runs * len(self._calls))


def measure(contenders: Mapping[str, Repeated]) -> dict[str, Timing]:
    """Times contenders in turns, so that what changes on the device meets all of them alike."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(_SAMPLES):
        for name, contender in contenders.items():
            seconds[name].append(contender.sample())
    return {name: _timing(sorted(samples)) for name, samples in seconds.items()}


def _timing(seconds: Sequence[float]) -> Timing:
    tenth = len(seconds) // 10
    return Timing(
        median=1e6 * statistics.median(seconds),
        low=1e6 * seconds[tenth],
        high=1e6 * seconds[-1 - tenth],
        samples=len(seconds),
    )


def copies_needed(tensor_bytes: int, device: str) -> int:
    """How many inputs to rotate through so that none is in the cache when its turn comes."""
    return max(1, min(32, 2 * _cache_bytes(device) // tensor_bytes + 1))


def device_name(device: str) -> str:
    """What the device calls itself."""
    if device == "cuda":
        return str(torch.cuda.get_device_name())
    if device == "mps":
        return f"{torch._C._mps_get_name()} GPU"
    return f"CPU, {torch.get_num_threads()} threads"


def _cache_bytes(device: str) -> int:
    if device == "cuda":
        return int(torch.cuda.get_device_properties(0).L2_cache_size)
    return 64 * 1024 * 1024


def _all(calls: Sequence[Call]) -> Call:
    def run() -> None:
        for call in calls:
            call()

    return run


def _graph(calls: Sequence[Call]) -> Call:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for call in calls:
            call()
    return graph.replay


def _seconds(run: Call, runs: int, device: str) -> float:
    if device == "cuda":
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(runs):
            run()
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end)) / 1e3
    start = time.perf_counter()
    for _ in range(runs):
        run()
    _synchronize(device)
    return time.perf_counter() - start


def _synchronize(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()
    elif device == "mps":
        torch.mps.synchronize()


def geometric_mean(values: Iterator[float] | Sequence[float]) -> float:
    """Of positive values; NaN of none."""
    found = list(values)
    return statistics.geometric_mean(found) if found else float("nan")
