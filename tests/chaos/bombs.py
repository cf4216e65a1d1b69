"""Drivers of a stream in forks of this process, which end, or stand still, at an operation on files of a number."""

from __future__ import annotations

import os
import random

from tests.chaos.driver import Stream, drive

from skypane.testing.kills import Bomb, fork
from skypane.types import CheckpointError

DONE, WRONG, TAKEN_OVER = 0, 1, 3


def start(stream: Stream, seed: int, bomb: Bomb | None = None) -> int:
    """Start a driver; return its process id."""
    return fork(lambda: drive(stream, random.Random(seed)), bomb, _status)


def _status(error: Exception) -> int:
    return TAKEN_OVER if isinstance(error, CheckpointError) and "taken it over" in str(error) else WRONG


def ended(child: int) -> int:
    """Return how a driver has ended, or minus the signal that ended it or has it stand still."""
    _, status = os.waitpid(child, os.WUNTRACED)
    return -os.WSTOPSIG(status) if os.WIFSTOPPED(status) else os.waitstatus_to_exitcode(status)
