"""Lines of one input that are read from its log and not merged yet, and their merge into one text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from skypane.types import BoolArray, IntArray


class TakenLines(NamedTuple):
    """Lines of an input, from the front.

    lengths   the bytes of each line
    rejected  which lines have no place in the order
    reasons   why, by number; "" for an empty line
    """

    offset: int
    text: bytes
    lengths: IntArray
    rejected: BoolArray
    reasons: Mapping[int, str]


class WaitingLines:
    """The lines of an input's log from `at` up to `read`, in the order of the log."""

    def __init__(self, at: int) -> None:
        self.at = self.read = at
        #: read bytes, of which the first `_passed` are taken already
        self._text = b""
        self._passed = 0
        self._lengths = np.empty(0, np.int64)
        self._rejected = np.empty(0, np.bool_)
        #: why lines are rejected, by their number since the start
        self._reasons: dict[int, str] = {}
        #: the number of the first line that waits
        self._first = 0

    @property
    def size(self) -> int:
        """How many bytes wait."""
        return self.read - self.at

    @property
    def rows(self) -> int:
        """How many lines wait that have a place in the order."""
        return int(np.count_nonzero(~self._rejected))

    def add(self, text: bytes, lengths: IntArray, reasons: Mapping[int, str]) -> None:
        """Add the next lines of the log; `reasons` are by their number in `text`."""
        rejected = np.zeros(len(lengths), np.bool_)
        rejected[list(reasons)] = True
        begin = self._first + len(self._lengths)
        self._reasons |= {begin + at: reason for at, reason in reasons.items()}
        self._text = self._text[self._passed :] + text
        self._passed = 0
        self._lengths = np.concatenate([self._lengths, lengths])
        self._rejected = np.concatenate([self._rejected, rejected])
        self.read += len(text)

    def take(self, rows: int) -> TakenLines:
        """Take the first `rows` lines that have a place in the order, and the rejected lines before the next such line."""
        placed = np.flatnonzero(~self._rejected)
        count = int(placed[rows]) if rows < len(placed) else len(self._lengths)
        size = int(self._lengths[:count].sum())
        reasons = {at: self._reasons.pop(self._first + at) for at in np.flatnonzero(self._rejected[:count]).tolist()}
        text = self._text[self._passed : self._passed + size]
        taken = TakenLines(self.at, text, self._lengths[:count], self._rejected[:count], reasons)
        self._lengths, self._rejected = self._lengths[count:], self._rejected[count:]
        self._passed += size
        self._first += count
        self.at += size
        return taken


def interleaved(taken: Sequence[TakenLines], inputs: IntArray) -> bytes:
    """Return the lines that have a place, each the next one of the input that `inputs` names."""
    lengths = np.concatenate([one.lengths for one in taken])
    placed = np.flatnonzero(~np.concatenate([one.rejected for one in taken]))
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    text = b"".join(one.text for one in taken)
    lines = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(lengths), [None, pa.py_buffer(offsets), pa.py_buffer(text)]
    )
    order = np.empty(len(inputs), np.int64)
    order[np.argsort(inputs, kind="stable")] = placed
    together = lines.take(pa.array(order))
    return together.buffers()[2].to_pybytes() if len(order) else b""
