"""Ctrl-C that comes while it is held back."""

from __future__ import annotations

import signal

import pytest

from mpskit import interrupts


def test_one_that_comes_is_raised_at_the_end() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), interrupts.held():
        signal.raise_signal(signal.SIGINT)
        done.append("all of the block")
    assert done
    assert interrupts.are_raised()
    with interrupts.held():
        assert not interrupts.are_raised()


def test_a_handler_of_the_programs_own_stays() -> None:
    caught = []
    previous = signal.signal(signal.SIGINT, lambda *_: caught.append(1))
    try:
        with interrupts.held():
            signal.raise_signal(signal.SIGINT)
            assert caught
    finally:
        signal.signal(signal.SIGINT, previous)
