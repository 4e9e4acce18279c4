# ruff: noqa: E501 (expected output stands as it is printed)
"""The text of a pull request, from small fixed inputs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from unittest import mock

from proposals import SECOND_PATCH, ProposalTestCase, bench_report, suite_result

from mpskit.pullrequest import memory
from mpskit.pullrequest.rendering import byte_size, render, unwrapped
from mpskit.pullrequest.upstream_tests import UpstreamRun
from mpskit.verify.benchmarks.workloads import Workload

RUN = UpstreamRun("cpu", 2, [], {"log_softmax_row_float_u32": 3}, {}, 7, [])


def fixed_allocations(_: Path, __: str, workloads: Iterable[Workload]) -> list[memory.Allocation]:
    return [
        memory.Allocation(workload, "row", workload.tensor_bytes, 8 * i)
        for i, workload in enumerate(workloads)
    ]


class MemoryTest(ProposalTestCase):
    def test_partial_results_are_the_temporaries(self) -> None:
        self.make_applied()
        workloads = [Workload((64, 1000), -1, "float16"), Workload((1, 151936), -1, "float32")]
        short, long = memory.allocations(self.root, "_log_softmax.out", workloads)
        self.assertEqual((short.result, short.temporaries), (128000, 0))
        self.assertEqual(long.result, 4 * 151936)
        self.assertTrue(0 < long.temporaries < 10000)


class TextTest(ProposalTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.enterContext_(mock.patch.object(memory, "allocations", fixed_allocations))

    def neutral(self, text: str) -> str:
        text = re.sub(r"(samples besides PyTorch's own:) .*", r"\1 OURS", text)
        return re.sub(r"SHA-256 `[0-9a-f]{16}`", "SHA-256 `DIGEST`", text)

    def test_with_everything(self) -> None:
        series = self.make_applied()
        material = self.material(series, suite_result(), bench_report())
        request = render(material, series.commits[0], RUN)
        self.assertEqual(request.title, "[MPS] Move log_softmax to Metal")
        self.assertEqual(request.text, f"# {request.title}\n\n{request.body}")
        self.assertExpectedInline(
            self.neutral(request.text),
            """\
# [MPS] Move log_softmax to Metal

## Why

It compiled a graph for each shape.

Fixes #1

## Kernels[^1]

| Kernel | When the plan launches it | Launches in the suite[^2] |
| --- | --- | ---: |
| `log_softmax_row` | a row fits into registers | 12 |
| `log_softmax_partial` | rows are long and few | 5 |
| `log_softmax_finalize` | after log_softmax_partial | 5 |
| `log_softmax` | else | 8 |

## Dtypes and layouts[^2]

- dtypes: float32 (20 samples)
- index widths: u32, u64
- inputs: contiguous
- results: contiguous
- samples besides PyTorch's own: OURS

## Latency

Apple M1 Pro GPU, before and after on MPS.[^3]

| Shape | Dtype | Dim | Layout | Before (us) | After (us) | Speedup | Model |
| --- | --- | ---: | --- | ---: | ---: | ---: | --- |
| `64x1000` | fp32 | -1 | contiguous | 30.0 | 10.0 | **3.000x** | ViT-base |
| `1x151936` | fp32 | -1 | contiguous | 30.0 | 10.0 | **3.000x** |  |

- 3.00x torch (geometric mean)
- reference did not run: not here

## Memory

What the op allocates on a GPU of 16 cores: its result and, where rows are split, partial results.[^4]

| Shape | Dtype | Dim | Layout | Branch | Result | Temporaries |
| --- | --- | ---: | --- | --- | ---: | ---: |
| `64x1000` | float32 | -1 | contiguous | row | 250 KiB | 0 B |
| `1x151936` | float32 | -1 | contiguous | row | 593.5 KiB | 8 B |

## Accuracy

Largest errors against a float64 reference, over the suite's samples, beside those of torch's CPU kernel on the samples that it takes.[^2]

| Dtype | Samples | Max ULP | CPU's | In sample |
| --- | ---: | ---: | ---: | --- |
| float32 | 20 | 1.25 | 1.50 | `float32[2, 3], dim=1` |

Against float64, over the benchmark's workloads.[^3]

| Workload | kernels, max / mean ULP | torch, max / mean ULP |
| --- | ---: | ---: |
| 64x1000 dim -1 float32 | 1.00 / 0.250 | 2.00 / 0.250 |
| 1x151936 dim -1 float32 | 1.00 / 0.250 | 2.00 / 0.250 |

## Test plan

```
python test/test_mps_log_softmax.py
mpskit test --patch-set .
```

`test/test_mps_log_softmax.py`: 2 tests with the kernels in place on mpskit's cpu backend, 0 failed or skipped, 3 launches. Every branch also ran under the sanitizer: 7 launches, 0 reports.[^5]

PyTorch's OpInfo samples and more, on the unmodified Metal source (mpskit's cpu backend), each against a float64 reference: 4 passed, 0 failed, 0 skipped.[^2]

| Dtype | Passed | Failed | Skipped | Samples compared |
| --- | ---: | ---: | ---: | ---: |
| float32 | 3 | 0 | 0 | 20 |
| none | 1 | 0 | 0 |  |

## Known limits

- Not run on an Apple GPU: the Metal source ran on mpskit's cpu backend.
- No float64.

## Follow-ups

- The backward.

Labels: `module: mps`

[^1]: `series.toml`, patch `forward`.
[^2]: `report.json`, SHA-256 `DIGEST`: `mpskit test --json`.
[^3]: `bench0.json`, SHA-256 `DIGEST`: `mpskit bench`, 2026-12-01.
[^4]: `LogSoftmaxPlan.h`, SHA-256 `DIGEST`, asked about the workloads of `bench0.json`.
[^5]: `upstream_tests.json`, SHA-256 `DIGEST`.
""",
        )

    def test_with_nothing(self) -> None:
        series = self.make_applied()
        text = render(self.material(series), series.commits[0], None).text
        for heading in ("Latency", "Accuracy"):
            self.assertIn(f"## {heading}\n\nNot measured.\n", text)
        self.assertNotIn("passed", text)

    def test_a_benchmark_from_another_device_says_so(self) -> None:
        series = self.make_applied()
        material = self.material(series, None, bench_report(backend="cuda"))
        text = render(material, series.commits[0], None).text
        self.assertIn("not an Apple GPU: before is torch's own cuda kernel", text)
        self.assertIn("- No latency from an Apple GPU.", text)

    def test_a_stack(self) -> None:
        self.files["docs/log_softmax.md"] = "It is on Metal.\n"
        series = self.make_applied(**{"series.toml": self.files["series.toml"] + SECOND_PATCH})
        material = self.material(series)
        first, second = (render(material, item, None) for item in series.commits)
        self.assertIn(
            "Stack, from the bottom:\n\n"
            "- **[MPS] Move log_softmax to Metal** (this one)\n"
            "- [MPS] Say that log_softmax is on Metal\n",
            first.text,
        )
        self.assertExpectedInline(
            second.text,
            """\
# [MPS] Say that log_softmax is on Metal

Stack, from the bottom:

- [MPS] Move log_softmax to Metal
- **[MPS] Say that log_softmax is on Metal** (this one)

## Why

For readers.

## Latency

Not measured.

## Memory

Not counted: mpskit cannot ask this op's plan.

## Accuracy

Not measured.

## Test plan

```
# no test is added
```

Labels: `module: mps`
""",
        )

    def test_paragraphs(self) -> None:
        self.assertEqual(unwrapped("a\nb\n\n- c\n- d\n\nFixes #1"), "a b\n\n- c\n- d\n\nFixes #1")

    def test_sizes(self) -> None:
        sizes = [byte_size(count) for count in (0, 1023, 1024, 2560, 2**20, 2**30, 605 * 2**20)]
        self.assertEqual(
            sizes, ["0 B", "1023 B", "1 KiB", "2.5 KiB", "1 MiB", "1024 MiB", "605 MiB"]
        )
