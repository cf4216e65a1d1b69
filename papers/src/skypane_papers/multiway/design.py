"""Interface of the designs of paper 2 (sections 4 and 5), with the kinds of threads that call it."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from skypane.types import BadInputError, ConfigError, IntArray
from skypane_papers.multiway.aggregation import Aggregation, Winset
from skypane_papers.multiway.order import check_order

KEY_BITS = 31
VALUE_BITS = 32


class Multiway(ABC):
    """An aggregate of many inputs, each in time order; equal input gives equal winsets in every design.

    add           called by an input's thread: add tuples, oldest first; return how many were accepted
    leave         called by an input's thread: end the input
    work          called by one of `workers` update threads: update windows with ready tuples; return False at the end
    next_winset   called by the output thread: return the next complete winset; None if there is none
    """

    workers = 0

    def __init__(self, inputs: int, aggregation: Aggregation) -> None:
        if inputs < 1:
            raise ConfigError(f"inputs must be at least 1, got {inputs}")
        self.inputs = inputs
        self.aggregation = aggregation
        self._newest = np.full(inputs, np.iinfo(np.int64).min)
        self._left = [False] * inputs

    def add(self, source: int, times: IntArray, keys: IntArray, values: IntArray) -> int:
        """Add an input's tuples; return how many were accepted.

        Raise BadInputError, which names the input and the tuple, if time goes backwards.
        """
        self._check(source)
        times, keys, values = (np.ascontiguousarray(column, np.int64) for column in (times, keys, values))
        check_order(f"input {source}", self._newest[source], times)
        done = self._add(source, times, keys, values)
        if done:
            self._newest[source] = times[done - 1]
        return done

    def leave(self, source: int) -> None:
        """Stop waiting for this input."""
        self._check(source)
        self._leave(source)
        self._left[source] = True  # last, because a reader that sees that all have left takes the queues as complete

    def work(self, worker: int) -> bool:
        """Update windows with ready tuples; return False after the last tuple."""
        raise ConfigError(f"worker must not be given, as {type(self).__name__} has no update threads, got {worker}")

    @abstractmethod
    def next_winset(self) -> Winset | None:
        """Return the earliest complete winset; None if there is none."""

    @abstractmethod
    def _add(self, source: int, times: IntArray, keys: IntArray, values: IntArray) -> int: ...

    @abstractmethod
    def _leave(self, source: int) -> None: ...

    def _check(self, source: int) -> None:
        if not 0 <= source < self.inputs:
            raise BadInputError(f"input must be 0 to {self.inputs - 1}, got {source}")
        if self._left[source]:
            raise BadInputError(f"input {source} has left and may not send again")


def packed(keys: IntArray, values: IntArray) -> IntArray:
    """Return each key and value in one word; raise BadInputError if one does not fit."""
    for name, column, least, bits in (("key", keys, 0, KEY_BITS), ("value", values, -(1 << 31), VALUE_BITS)):
        wrong = (column < least) | (column >= least + (1 << bits))
        if wrong.any():
            raise BadInputError(
                f"{name} must be a whole number from {least} to {least + (1 << bits) - 1}, got {column[wrong][0]}"
            )
    return keys << VALUE_BITS | (values & 0xFFFFFFFF)


def unpacked(payloads: IntArray) -> tuple[IntArray, IntArray]:
    """Return the keys and values of packed words."""
    return payloads >> VALUE_BITS, payloads.astype(np.int32).astype(np.int64)
