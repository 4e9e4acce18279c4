"""Kernels that crash or do not end: an exception, and a process that goes on."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from mpskit.metal import KernelFaultError, KernelTimeoutError, LaunchError, compile_shader

SOURCE = """
kernel void null(device float* x, uint i [[thread_position_in_grid]]) {
  device float* nowhere = (device float*)ulong(x[0]);
  if (i == 37) nowhere[2] = 1;
}
kernel void wild(device float* x, constant ulong& address, uint i [[thread_position_in_grid]]) {
  const ulong place = address;
  if (i == 5) *(device float*)place = 1;
}
kernel void divide(device int* x, uint i [[thread_position_in_grid]]) { x[i] = 7 / x[i]; }
kernel void sums_then_null(device float* x, uint i [[thread_position_in_grid]]) {
  const float sum = metal::simd_sum(x[i]);
  threadgroup_barrier(metal::mem_flags::mem_device);
  if (i == 70) *(device float*)(ulong)(sum) = 1;
}
kernel void large_locals(device int* x, uint i [[thread_position_in_grid]]) {
  volatile int locals[200000];
  locals[x[i]] = 1;
  x[i] = locals[i];
}
kernel void fitting_locals(device int* x, uint i [[thread_position_in_grid]]) {
  volatile int locals[50000];
  locals[i] = 1;
  x[i] = locals[i];
}
kernel void spin(device int* x, uint i [[thread_position_in_grid]]) {
  volatile int turns = 0;
  while (x[0] == 0) turns = turns + 1;
}
kernel void meet_for_ever(device int* x, uint i [[thread_position_in_grid]]) {
  while (x[0] == 0) threadgroup_barrier(metal::mem_flags::mem_none);
}
kernel void sum_for_ever(device int* x, uint i [[thread_position_in_grid]]) {
  while (metal::simd_sum(x[0]) == 0) {
  }
}
kernel void some_finish(device int* x, uint i [[thread_position_in_grid]]) {
  volatile int turns = metal::simd_sum(1);
  if (i % 32 == 0) return;
  while (x[0] == 0) turns = turns + 1;
}
kernel void trap(device int* x, uint i [[thread_position_in_grid]]) {
  if (i == 6) __builtin_trap();
}
kernel void fill(device int* x, uint i [[thread_position_in_grid]]) { x[i] = i; }
"""


MEETING = """
kernel void meet(device float* x, uint i [[thread_position_in_grid]]) {
  threadgroup_barrier(metal::mem_flags::mem_none);
  x[i] = 1;
}
"""


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "sanitized"])
def lib(request):
    return compile_shader(SOURCE, sanitize=request.param)


def message_of(kernel, *args, **options):
    with pytest.raises(KernelFaultError) as caught:
        kernel(*args, **options)
    return caught.value.message


def works(lib):
    x = torch.zeros(256, dtype=torch.int)
    lib.fill(x, group_size=64)
    assert x.tolist() == list(range(256))


def test_null(lib):
    message = message_of(lib.null, torch.zeros(64), group_size=16)
    assert "thread (5, 0, 0) of threadgroup (2, 0, 0): a null pointer was dereferenced" in message
    assert message.startswith("null, ")
    works(lib)


def test_wild_addresses(lib):
    message = message_of(lib.wild, torch.zeros(64), 2**40 + 64, group_size=16)
    assert "it accessed address 0x10000000040" in message
    message = message_of(lib.wild, torch.zeros(64), 2**62, group_size=16)
    assert "an address that cannot exist" in message
    works(lib)


@pytest.mark.skipif(sys.platform == "darwin", reason="arm64 divides by zero without a fault")
def test_division_by_zero(lib):
    x = torch.ones(64, dtype=torch.int)
    x[40] = 0
    assert "(40, 0, 0) of threadgroup (0, 0, 0): an integer division by zero" in message_of(
        lib.divide, x, group_size=64
    )
    works(lib)


def test_code_that_no_thread_should_reach(lib):
    message = message_of(lib.trap, torch.zeros(8, dtype=torch.int))
    assert "(6, 0, 0) of threadgroup (0, 0, 0): it came to code that has no meaning" in message
    works(lib)


def test_behind_operations_of_the_simdgroup_and_threadgroup(lib):
    message = message_of(lib.sums_then_null, torch.zeros(128), group_size=128)
    assert "thread (70, 0, 0) of threadgroup (0, 0, 0)" in message
    works(lib)


def test_stack_overflow(lib):
    x = torch.zeros(64, dtype=torch.int)
    assert "the stack overflowed" in message_of(lib.large_locals, x, group_size=64)
    lib.fitting_locals(x, group_size=64)
    assert x.tolist() == [1] * 64
    works(lib)


@pytest.mark.parametrize("name", ["spin", "meet_for_ever", "sum_for_ever", "some_finish"])
def test_time_limit(lib, name):
    begin = time.monotonic()
    with pytest.raises(KernelTimeoutError) as caught:
        getattr(lib, name)(torch.zeros(256, dtype=torch.int), group_size=64, timeout=0.2)
    assert time.monotonic() - begin >= 0.2
    assert f"{name} did not end within 0.2 s: thread (" in caught.value.message
    works(lib)


def test_a_time_limit_that_is_kept(lib):
    x = torch.zeros(256, dtype=torch.int)
    lib.fill(x, group_size=64, timeout=60)
    assert x[255] == 255


def test_a_time_limit_is_positive(lib):
    with pytest.raises(LaunchError, match="a time limit of 0 seconds"):
        lib.fill(torch.zeros(8, dtype=torch.int), timeout=0)


@pytest.mark.parametrize("name", ["spin", "meet_for_ever", "sum_for_ever"])
def test_an_interrupt_ends_a_kernel(lib, name):
    with pytest.raises(KeyboardInterrupt):
        threading.Timer(0.2, signal.raise_signal, [signal.SIGINT]).start()
        getattr(lib, name)(torch.zeros(256, dtype=torch.int), group_size=64, timeout=60)
    works(lib)


def test_one_interrupt_raises_once():
    # While a kernel runs, and just before: an interrupt that a launch did not see would come when
    # its time is over.
    program = """
import os, signal, threading, time, torch
from mpskit.metal import compile_shader
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, list(os.sched_getaffinity(0))[:1])  # every order of the threads
source = "kernel void spin(device int* x) { while (*(volatile device int*)x == 0); }"
spin = compile_shader(source).spin
x, raised = torch.zeros(1, dtype=torch.int), 0
for turn in range(300):
    try:
        threading.Timer(turn % 2 * 0.004, signal.raise_signal, [signal.SIGINT]).start()
        spin(x, threads=1, timeout=60)
    except KeyboardInterrupt:
        raised += 1
    time.sleep(0.001)  # where a second one would be raised
print(raised)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "300\n"), done.stderr


def test_an_interrupt_that_the_program_handles_itself_ends_no_kernel(lib):
    caught = []
    previous = signal.signal(signal.SIGINT, lambda *_: caught.append(1))
    timer = threading.Timer(0.1, signal.raise_signal, [signal.SIGINT])
    try:
        timer.start()
        with pytest.raises(KernelTimeoutError):
            lib.spin(torch.zeros(256, dtype=torch.int), group_size=64, timeout=0.4)
    finally:
        timer.join()  # which may be late
        signal.signal(signal.SIGINT, previous)
    assert caught == [1]


def test_one_threads_fault_leaves_others_alone(lib):
    failures = []

    def faults():
        for _ in range(20):
            message_of(lib.null, torch.zeros(64), group_size=16)

    def launches():
        for _ in range(20):
            works(lib)

    def guarded(work):
        try:
            work()
        except BaseException as error:
            failures.append(error)

    work = (faults, launches, launches, faults, launches, launches)
    threads = [threading.Thread(target=guarded, args=(w,)) for w in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_outside_the_main_thread(lib):
    def launch():
        message_of(lib.null, torch.zeros(64), group_size=16)
        message_of(lib.large_locals, torch.zeros(64, dtype=torch.int), group_size=64)
        with pytest.raises(KernelTimeoutError):
            lib.spin(torch.zeros(64, dtype=torch.int), group_size=64, timeout=0.1)
        works(lib)
        return True

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(launch).result()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems hand out memory they lack")
@pytest.mark.parametrize(
    "sanitize, message",
    [
        (False, "the system gave no memory for the stack of a thread"),
        (True, "the sanitizer was refused the address space that it needs"),
    ],
)
def test_a_process_that_gets_no_more_memory(sanitize, message):
    program = f"""
import resource, torch
from pathlib import Path
from mpskit.metal import LaunchError, compile_shader
torch.set_num_threads(1)
kernel = compile_shader({MEETING!r}, sanitize={sanitize}).meet
x = torch.zeros(1024)
compile_shader({MEETING!r}).meet(x[:32])
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
before = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (used + 2**25, before[1]))
for _ in range(2):
    try:
        kernel(x)
    except LaunchError as error:
        print(error.message)
resource.setrlimit(resource.RLIMIT_AS, before)
kernel(x)
print(x.sum().item())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    *refusals, total = done.stdout.splitlines()
    assert len(refusals) == 2 and all(message in line for line in refusals)
    assert total == "1024.0"


def test_handlers_are_those_from_before():
    caught = []
    previous = signal.signal(signal.SIGFPE, lambda *_: caught.append(1))
    try:
        lib = compile_shader(SOURCE)
        message_of(lib.divide, torch.zeros(8, dtype=torch.int))
        assert not caught
        signal.raise_signal(signal.SIGFPE)
        assert caught == [1]
    finally:
        signal.signal(signal.SIGFPE, previous)


def test_a_fault_that_is_no_kernels_ends_the_process():
    program = """
import ctypes, faulthandler, torch
from mpskit.metal import compile_shader
faulthandler.enable()
compile_shader("kernel void f(device float* x) { x[0] = 1; }").f(torch.zeros(1), threads=1)
ctypes.string_at(0)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == -signal.SIGSEGV
    assert "Fatal Python error: Segmentation fault" in done.stderr
