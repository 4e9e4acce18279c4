"""One mpskit at a time in a checkout."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path

from mpskit.errors import MpskitError

LOCK_FILE = "lock"


@contextlib.contextmanager
def exclusive(directory: Path, operation: str, checkout_root: Path) -> Iterator[None]:
    """Hold the lock in ``directory`` (made for it, and removed with it when it ends up empty).

    The kernel's lock on the file counts, not the file: it ends with its process, however that
    ends, so a lock that a crash left behind is no obstacle. Programs started inside the block hold
    the lock on until they end: what a killed mpskit's git still does, it does alone. The file's
    text names the holder.

    Raises:
        MpskitError: another process holds the lock; names it.
    """
    path = directory / LOCK_FILE
    try:
        descriptor = _acquire(path, checkout_root)
        try:
            holder = {"pid": os.getpid(), "host": socket.gethostname(), "operation": operation}
            os.ftruncate(descriptor, 0)
            os.write(descriptor, json.dumps(holder).encode())
            yield
        finally:
            path.unlink(missing_ok=True)
            os.close(descriptor)
    finally:
        with contextlib.suppress(OSError):
            directory.rmdir()


def _acquire(path: Path, checkout_root: Path) -> int:
    while True:
        with contextlib.suppress(FileExistsError):
            path.parent.mkdir()
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except FileNotFoundError:
            continue  # the last holder has removed the directory just now
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _still_at(path, descriptor):
                os.set_inheritable(descriptor, True)
                return descriptor
            os.close(descriptor)
        except BlockingIOError:
            holder = os.pread(descriptor, 1000, 0)
            os.close(descriptor)
            raise _held(holder, checkout_root) from None
        except BaseException:
            os.close(descriptor)
            raise


def _still_at(path: Path, descriptor: int) -> bool:
    """Whether the file locked is the one that others find: its last holder may have removed it."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    return False


def _held(holder: bytes, checkout_root: Path) -> MpskitError:
    try:
        who = json.loads(holder)
        name = f"mpskit {who['operation']}, process {who['pid']} on {who['host']},"
    except (ValueError, KeyError, TypeError):
        name = "Another mpskit"
    return MpskitError(
        f"{name} is at work in {checkout_root}.", hint="Wait for it to end and run it again."
    )
