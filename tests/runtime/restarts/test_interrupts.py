"""An interrupt amid the loading and the calls of kernels: it comes, but not before they have returned."""

from __future__ import annotations

import pytest
from tests.runtime.scenarios import lines_of

INTERRUPTED = """
import signal, sys
from skypane import kernels
from skypane.runtime.interrupts import interrupted_afterwards

def interrupt(frame, event, argument):
    if frame.f_code.co_name == "_numba_unpickle":
        sys.setprofile(None)
        print("came")
        signal.raise_signal(signal.SIGINT)

if sys.argv[1] == "again":
    kernels.warm()
usual = signal.default_int_handler
signal.signal(signal.SIGINT, usual)
sys.setprofile(interrupt)
try:
    with interrupted_afterwards():
        kernels.warm()
except KeyboardInterrupt:
    print("interrupted", signal.getsignal(signal.SIGINT) is usual, kernels.warm())
"""


@pytest.mark.parametrize("call", ["first", "again"])
def test_an_interrupt_waits_until_kernels_are_loaded_and_have_returned(call: str):
    """Numba calls back into Python in the first calls, which load kernels, and in each later one that returns an array."""
    assert lines_of("-c", INTERRUPTED, call) == ["came", "interrupted True ()"]
