"""Ctrl-C where it would do harm."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator


def are_raised() -> bool:
    """Whether Ctrl-C raises KeyboardInterrupt in this thread; a program's own handler may not."""
    return (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )


@contextlib.contextmanager
def held() -> Iterator[None]:
    """Keeps Ctrl-C's exception from the block, and raises it at the block's end.

    For the start of a program: between that and the code that ends the program when it is
    interrupted, the exception would leave it running.
    """
    if not are_raised():
        yield
        return
    came: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if came:
        raise KeyboardInterrupt
