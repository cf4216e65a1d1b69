"""Interrupts of a driver of a campaign: between two streams they wait for the next one."""

from __future__ import annotations

import signal

import pytest
from tests.nature.driver import Interrupts


def test_an_interrupt_between_two_streams_is_raised_in_the_next():
    before = signal.getsignal(signal.SIGINT)
    try:
        interrupts = Interrupts()
        with interrupts.raised():
            assert signal.getsignal(signal.SIGINT) is before
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt), interrupts.raised():
            raise AssertionError("the stream has begun")
        with interrupts.raised():
            pass
        signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
