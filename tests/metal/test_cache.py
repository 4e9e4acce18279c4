"""The cache of compiled kernels: full disks, many users at once, entries of other compilers."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mpskit.errors import MpskitError
from mpskit.metal import cache, compile_shader, host_compiler

COMPILER = shutil.which("g++") or shutil.which("clang++")
pytestmark = pytest.mark.skipif(
    COMPILER is None, reason="the compiler's stand-ins call g++ or clang++"
)

KERNEL = "kernel void fill(device float* x, uint i [[thread_position_in_grid]]) { x[i] = i; }"

PROGRAM = f"""
import threading, torch
from mpskit.metal import compile_shader
def work():
    x = torch.zeros(64)
    compile_shader({KERNEL!r}).fill(x)
    assert x.tolist() == list(range(64))
    done.append(1)
done = []
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert len(done) == 4
"""


@pytest.fixture
def compiler(tmp_path, monkeypatch):
    """Makes `CXX` a script around the real compiler, and the cache a new one."""
    monkeypatch.setenv("MPSKIT_CACHE_DIR", str(tmp_path / "cache"))

    def use(script: str, name: str = "c++") -> None:
        file = tmp_path / name
        file.write_text(f'#!/bin/sh\n{script}\nexec {shlex.quote(COMPILER)} "$@"\n')
        file.chmod(0o755)
        monkeypatch.setenv("CXX", str(file))
        forget()

    def forget():
        cache.directory.cache_clear()
        cache._process_folder.cache_clear()
        host_compiler.find_compiler.cache_clear()

    yield use
    monkeypatch.undo()
    forget()


def fill_the_disk(folder: object) -> str:
    """A compiler's script that finds no room below a folder."""
    return f"""case "$*" in *"-o {folder}"*)
      echo "/usr/bin/ld: final link failed: No space left on device" >&2; exit 1;; esac"""


def entries(tmp_path: Path) -> set[Path]:
    return set((tmp_path / "cache").glob(f"metal-*{host_compiler.SUFFIX}"))


def test_a_full_disk_is_done_without(tmp_path, compiler):
    compiler(fill_the_disk(tmp_path / "cache"))
    assert dir(compile_shader(KERNEL)) == ["fill"]
    assert not entries(tmp_path)


def test_no_room_anywhere_is_one_clear_error(compiler):
    compiler(fill_the_disk(""))
    with pytest.raises(MpskitError, match=r"no place for a compiled kernel: .*No space") as caught:
        compile_shader(KERNEL)
    assert "MPSKIT_CACHE_DIR" in caught.value.hint


def test_processes_and_threads_that_want_the_same_kernel_build_it_once(tmp_path, compiler):
    log = tmp_path / "log"
    compiler(f"""case "$*" in *metal-*) echo built >> {log};; esac""")
    children = [subprocess.Popen([sys.executable, "-c", PROGRAM]) for _ in range(2)]
    assert [child.wait() for child in children] == [0, 0]
    assert log.read_text().count("built") == 1


def test_each_compiler_has_entries_of_its_own(tmp_path, compiler):
    compiler("")
    compile_shader(KERNEL)
    first = entries(tmp_path)
    compiler('[ "$1" = --version ] && echo "g++ 99.0" && exit 0')
    compile_shader(KERNEL)
    assert len(first) == 1 and len(entries(tmp_path)) == 2
    compiler("")
    compile_shader(KERNEL)
    assert len(entries(tmp_path)) == 2


@pytest.mark.parametrize("home", [None, "a file"])
def test_a_process_without_a_home(tmp_path, home):
    (tmp_path / "a file").write_text("")
    environment = {k: v for k, v in os.environ.items()
                   if k not in ("HOME", "XDG_CACHE_HOME", "MPSKIT_CACHE_DIR")}  # fmt: skip
    if home:
        environment |= {"HOME": str(tmp_path / home), "TMPDIR": str(tmp_path)}
    program = "from mpskit.metal import cache; print(cache.directory())"
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert home is None or done.stdout.startswith(f"{tmp_path}/mpskit-cache-")
