"""What the designs of paper 2 (sections 4 and 5) have in common: the same calls, made by the same kinds of threads."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from skypane.multiway.aggregation import Aggregation, Winset
from skypane.multiway.order import check_order
from skypane.types import BadInputError, ConfigError, IntArray

KEY_BITS = 31
VALUE_BITS = 32


class Multiway(ABC):
    """An aggregate of many inputs, each in the order of its times; equal input gives equal winsets, in every design.

    add           an input's thread: tuples in, oldest first; how many there was room for, the others are the caller's
    leave         an input's thread: there will be no more of it
    work          an update thread, of which there are `workers`: updates windows by what is ready; False at the end
    next_winset   the output thread: the earliest winset that no tuple contributes to any more, once; None if there is none
    """

    workers = 0

    def __init__(self, inputs: int, aggregation: Aggregation) -> None:
        if inputs < 1:
            raise ConfigError(f"need at least one input, got {inputs}")
        self.inputs = inputs
        self.aggregation = aggregation
        self._newest = np.full(inputs, np.iinfo(np.int64).min)
        self._left = [False] * inputs

    def add(self, source: int, times: IntArray, keys: IntArray, values: IntArray) -> int:
        """Add an input's tuples; BadInputError, naming input and tuple, where time goes backwards."""
        self._check(source)
        times, keys, values = (np.ascontiguousarray(column, np.int64) for column in (times, keys, values))
        check_order(f"input {source}", self._newest[source], times)
        done = self._add(source, times, keys, values)
        if done:
            self._newest[source] = times[done - 1]
        return done

    def leave(self, source: int) -> None:
        """Wait for this input no longer."""
        self._check(source)
        self._leave(source)
        self._left[source] = True  # last: who sees that all have left takes what the queues give then for all there is

    def work(self, worker: int) -> bool:
        """Update windows by what is ready; False once no tuple can come any more."""
        raise ConfigError(f"{type(self).__name__} has no update threads, got worker {worker}")

    @abstractmethod
    def next_winset(self) -> Winset | None:
        """Return the earliest winset that is complete."""

    @abstractmethod
    def _add(self, source: int, times: IntArray, keys: IntArray, values: IntArray) -> int: ...

    @abstractmethod
    def _leave(self, source: int) -> None: ...

    def _check(self, source: int) -> None:
        if not 0 <= source < self.inputs:
            raise BadInputError(f"inputs are numbered from 0 to {self.inputs - 1}, got {source}")
        if self._left[source]:
            raise BadInputError(f"input {source} has left: it may not send again")


def packed(keys: IntArray, values: IntArray) -> IntArray:
    """Return keys and values in one word each; BadInputError for a key or a value that does not fit."""
    for name, column, least, bits in (("key", keys, 0, KEY_BITS), ("value", values, -(1 << 31), VALUE_BITS)):
        wrong = (column < least) | (column >= least + (1 << bits))
        if wrong.any():
            raise BadInputError(
                f"a {name} is a whole number of {least} to {least + (1 << bits) - 1} here, got {column[wrong][0]}"
            )
    return keys << VALUE_BITS | (values & 0xFFFFFFFF)


def unpacked(payloads: IntArray) -> tuple[IntArray, IntArray]:
    """Return the keys and values of words."""
    return payloads >> VALUE_BITS, payloads.astype(np.int32).astype(np.int64)
