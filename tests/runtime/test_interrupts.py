"""An interrupt amid the loading of kernels: it comes, but not before they are loaded."""

from __future__ import annotations

import subprocess
import sys

INTERRUPTED = """
import signal, sys
from skypane import kernels
from skypane.runtime.interrupts import interrupted_afterwards

def interrupt(frame, event, argument):
    if frame.f_code.co_name == "_numba_unpickle":
        sys.setprofile(None)
        print("came")
        signal.raise_signal(signal.SIGINT)

usual = signal.default_int_handler
signal.signal(signal.SIGINT, usual)
sys.setprofile(interrupt)
try:
    with interrupted_afterwards():
        kernels.warm()
except KeyboardInterrupt:
    print("interrupted", signal.getsignal(signal.SIGINT) is usual, kernels.warm())
"""


def test_an_interrupt_waits_until_numba_has_loaded_its_kernels():
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, check=False)
    assert done.stdout == "came\ninterrupted True ()\n", (done.returncode, done.stdout, done.stderr)
