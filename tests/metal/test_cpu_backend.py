"""What only the cpu backend does: poison, forks, the compilers and the cache of this machine."""

from __future__ import annotations

import multiprocessing
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import torch

import mpskit.metal
from mpskit.errors import MpskitError
from mpskit.metal import KernelTimeoutError, cache, compile_shader, host_compiler


def test_unwritten_threadgroup_memory_is_poison():
    lib = compile_shader("""
        kernel void unwritten(device float* out, uint i [[thread_position_in_grid]]) {
          threadgroup float t[40];
          out[i] = t[i];
        }
    """)
    out = torch.zeros(40)
    lib.unwritten(out, group_size=40)
    assert out.isnan().all()


COUNT = """
kernel void count(device int* out, uint i [[thread_position_in_grid]]) {
  out[i] = metal::simd_sum(1);
}
"""


def count_lanes() -> int:
    out = torch.zeros(4096, dtype=torch.int)
    compile_shader(COUNT).count(out, group_size=128)
    return int(out.sum())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
def test_a_fork_of_a_process_that_has_launched():
    assert count_lanes() == 32 * 4096
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply_async(count_lanes).get(600) == 32 * 4096


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
@pytest.mark.parametrize("sanitize", [False, True], ids=["plain", "sanitized"])
def test_a_fork_while_another_thread_launches(sanitize):
    lib = compile_shader(
        COUNT + "kernel void spin(device int* x) { while (x[0] == 0) metal::simd_sum(1); }",
        sanitize=sanitize,
    )
    out = torch.zeros(64, dtype=torch.int)

    def spin():
        with pytest.raises(KernelTimeoutError):
            lib.spin(torch.zeros(1, dtype=torch.int), threads=64, timeout=1)

    other = threading.Thread(target=spin)
    other.start()
    time.sleep(0.2)  # in the kernel by now, most often, holding what a dispatch holds
    if (child := os.fork()) == 0:
        signal.alarm(600)
        lib.count(out, group_size=32)
        os._exit(0 if out.tolist() == [32] * 64 else 1)
    assert os.waitpid(child, 0)[1] == 0
    other.join()


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MPSKIT_CACHE_DIR", str(tmp_path / "cache"))
    cache.directory.cache_clear()
    yield tmp_path / "cache"
    cache.directory.cache_clear()


def test_a_damaged_cache_entry_is_made_again(own_cache):
    built = []

    def build(file: Path) -> None:
        built.append(file)
        file.write_text("sound")

    file = cache.entry("one", build)
    assert cache.entry("one", build) == file and len(built) == 1
    for damage in (
        lambda: file.write_text("soun"),
        lambda: file.unlink(),
        lambda: cache.digest_of(file).unlink(),
        lambda: cache.digest_of(file).write_bytes(b"\xff"),
    ):
        damage()
        assert cache.entry("one", build).read_text() == "sound"
    assert len(built) == 5


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path, monkeypatch):
    blocker = tmp_path / "file"
    blocker.write_text("")
    monkeypatch.setenv("MPSKIT_CACHE_DIR", str(blocker / "cache"))
    cache.directory.cache_clear()
    try:
        assert cache.entry("one", lambda file: file.write_text("x") and None).read_text() == "x"
    finally:
        cache.directory.cache_clear()


def test_no_compiler_is_one_clear_error(monkeypatch, own_cache):
    monkeypatch.setenv("CXX", "/nonexistent/c++")
    host_compiler.find_compiler.cache_clear()
    try:
        with pytest.raises(MpskitError) as caught:
            compile_shader("kernel void never_compiled(device int* x) {}")
        assert "No C++ compiler was found" in caught.value.message
        assert "pip install 'mpskit[compiler]'" in (caught.value.hint or "")
    finally:
        host_compiler.find_compiler.cache_clear()


def test_a_compiler_that_fails_is_said_to(monkeypatch, own_cache, tmp_path):
    fake = tmp_path / "c++"
    fake.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo fake 1.0 && exit 0\necho boom >&2\nexit 3\n'
    )
    fake.chmod(0o755)
    monkeypatch.setenv("CXX", str(fake))
    host_compiler.find_compiler.cache_clear()
    try:
        with pytest.raises(MpskitError, match="boom"):
            compile_shader("kernel void never_compiled(device int* x) {}")
    finally:
        host_compiler.find_compiler.cache_clear()


@pytest.mark.parametrize("target", ["aarch64-macos", "aarch64-linux-gnu"])
def test_the_runtime_compiles_for_other_machines(tmp_path, target):
    pytest.importorskip("ziglang", reason="the compiler for other machines is its")
    metal = Path(mpskit.metal.__file__).parent
    command = [
        *(sys.executable, "-m", "ziglang", "c++", "-target", target),
        *("-std=c++20", "-O0", "-Wall", "-Wextra", "-Werror"),
        *(f"-I{metal / 'cpu'}", f"-I{metal / 'codegen'}"),
        *("-c", metal / "cpu/runtime.cpp", "-o", tmp_path / "runtime.o"),
    ]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_an_unknown_backend_is_refused():
    with pytest.raises(MpskitError, match="There is no backend 'opencl'"):
        compile_shader("", backend="opencl")


@pytest.mark.requires_mps("the launch rules are the ones that test_launching checks on the cpu")
def test_the_same_calls_on_a_macs_gpu():
    lib = compile_shader(
        "kernel void fill(device float* out, constant float& value,"
        " uint i [[thread_position_in_grid]]) { out[i] = value; }"
        "struct Params { float scale; int shift; };"
        "kernel void scaled(device float* x, constant Params& p,"
        " uint i [[thread_position_in_grid]]) { x[i] = x[i] * p.scale + p.shift; }",
        backend="mps",
    )
    x = torch.zeros(5, device="mps")
    lib.fill(x, 3.0)
    lib.scaled(x, struct.pack("<fi", 0.5, 10))
    assert x.cpu().tolist() == [11.5] * 5
