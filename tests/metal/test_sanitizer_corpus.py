"""Kernels of tests/kernels: what must be reported is, with the text beside it, and nothing else.

A kernel's first lines say how it is launched. With EXPECTTEST_ACCEPT=1 the texts are written anew.
Each compiler of this machine's makes the same reports.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from mpskit.metal import compile_shader, host_compiler
from mpskit.metal.argument_text import parse_argument, parse_size
from mpskit.metal.sanitizer import Check, SanitizerError

KERNELS = Path(__file__).parent.parent / "kernels"
COMPILERS = [name for name in ("g++", "clang++") if shutil.which(name)]
if importlib.util.find_spec("ziglang"):
    COMPILERS.append(shlex.join([sys.executable, "-m", "ziglang", "c++"]))
FOLDERS = {check.name.lower(): check for check in Check}


def files(kind: str) -> list[Any]:
    found = [file for check in FOLDERS for file in sorted((KERNELS / check / kind).glob("*.metal"))]
    return [pytest.param(file, id=f"{file.parent.parent.name}/{file.stem}") for file in found]


@dataclass(frozen=True)
class Launch:
    threads: tuple[int, ...]
    group_size: tuple[int, ...]
    arguments: list[Any]
    threadgroup: int | None

    @classmethod
    def read(cls, text: str) -> Launch:
        options = dict(re.findall(r"(\w+)=(\S+)", re.search(r"// launch: (.*)", text)[1]))
        length = options.get("threadgroup")
        return cls(
            parse_size(options["threads"]),
            parse_size(options["group_size"]),
            [parse_argument(word) for word in re.search(r"// args: (.*)", text)[1].split()],
            int(length) if length else None,
        )

    def run(self, kernel: Any) -> None:
        lengths = {0: self.threadgroup} if self.threadgroup else None
        kernel(
            *self.arguments,
            threads=self.threads,
            group_size=self.group_size,
            arg_casts={
                i: "int32" for i, a in enumerate(self.arguments) if isinstance(a, (int, tuple))
            },
            threadgroup_lengths=lengths,
            timeout=60,
        )


@pytest.fixture(
    params=COMPILERS, ids=lambda command: "zig" if "ziglang" in command else command, scope="module"
)
def compiler(request):
    """The command of a compiler that kernels are compiled with."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CXX", request.param)
        host_compiler.find_compiler.cache_clear()
        yield request.param
    host_compiler.find_compiler.cache_clear()


@lru_cache
def library(check: str, compiler: str) -> Any:
    """All kernels of one check: compiled at once, which is several times as fast."""
    assert os.environ["CXX"] == compiler
    folder = KERNELS / check
    includes = [f'#include "{f.relative_to(folder)}"' for f in sorted(folder.glob("*/*.metal"))]
    return compile_shader("\n".join(includes), include_dirs=[folder], sanitize=True)


def reports_of(file: Path, compiler: str) -> tuple[Any, ...]:
    text = file.read_text()
    name = re.search(r"kernel void (\w+)", text)[1]
    kernel = getattr(library(file.parent.parent.name, compiler), name)
    try:
        Launch.read(text).run(kernel)
    except SanitizerError as error:
        return error.reports
    return ()


def as_text(reports: tuple[Any, ...]) -> str:
    text = "".join(f"{report}\n" for report in reports)
    return text.replace(f"{KERNELS}/", "")


@pytest.mark.parametrize("file", files("reported"))
def test_reported(file, compiler):
    reports = reports_of(file, compiler)
    expected = file.with_suffix(".expected")
    if os.environ.get("EXPECTTEST_ACCEPT"):
        expected.write_text(as_text(reports))
    assert as_text(reports) == expected.read_text()
    assert FOLDERS[file.parent.parent.name] in {report.check for report in reports}


@pytest.mark.parametrize("file", files("clean"))
def test_not_reported(file, compiler):
    assert as_text(reports_of(file, compiler)) == ""


@pytest.mark.parametrize("check", FOLDERS)
def test_each_check_has_kernels_on_both_sides(check):
    for kind in ("reported", "clean"):
        assert len(list((KERNELS / check / kind).glob("*.metal"))) >= 10
