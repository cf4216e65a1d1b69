"""Numbers for the keys of a queue of panes, assigned once: a new pane looks up its keys, however many are known."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skypane.kernels import keyed
from skypane.kernels.column_layout import frozen
from skypane.kernels.key_table import KeyTable
from skypane.operators.aggregates.grouping import dense_codes
from skypane.operators.aggregates.list_columns import whole
from skypane.operators.aggregates.ordered_int64 import fits, keys_of
from skypane.types import BoolArray, IntArray


class KeyNumbers:
    """Keys in the order in which they were first seen, one table row each; without columns there is one key."""

    def __init__(self, schema: pa.Schema) -> None:
        self.keys = schema.empty_table()
        self._by = list(schema.names)
        #: whether keys are words in the table of key_table.py; Arrow compares texts with all known keys instead
        self._in_words = all(fits(field.type) for field in schema)
        self._forget()

    @property
    def count(self) -> int:
        """The number of known keys."""
        return self.keys.num_rows if self._by else 1

    def numbers(self, partial: pa.Table) -> IntArray:
        """Return the number of each key of a partial, whose keys are distinct; new keys get the next numbers."""
        keys = partial.select(self._by)
        if not self._by:
            return frozen(np.zeros(partial.num_rows, np.int64))
        known = self.count
        ids = self._table.of(_words(keys)) if self._in_words else self._compared(keys)
        new = np.flatnonzero(ids >= known) if not self._in_words or self._table.count > known else ()
        if len(new):
            self.keys = pa.concat_tables([self.keys, keys.take(pa.array(new))]).combine_chunks()
        return frozen(ids)

    def keep(self, needed: BoolArray) -> IntArray:
        """Forget all keys that are not `needed`; return the new numbers of the others, by their old numbers."""
        numbers: IntArray = np.cumsum(needed) - 1
        if self._by and not needed.all():
            self.keys = self.keys.take(pa.array(np.flatnonzero(needed)))
            self._forget()
        return numbers

    def _forget(self) -> None:
        self._table = KeyTable(len(self._by) + 1)
        if self._in_words and self.keys.num_rows:
            self._table.of(_words(self.keys))

    def _compared(self, keys: pa.Table) -> IntArray:
        together = pa.concat_tables([self.keys, keys]).combine_chunks()
        codes, size = dense_codes(together, self._by)
        numbers, _ = keyed.number_groups(frozen(codes), size, frozen(np.zeros(1, np.int64)))
        return np.ascontiguousarray(numbers[self.count :])


def _words(keys: pa.Table) -> IntArray:
    """Return keys as integers, (n, columns + 1): a word for each column, and a word with a bit for each null column."""
    words = np.zeros((keys.num_rows, keys.num_columns + 1), np.int64)
    for number, column in enumerate(keys.columns):
        values = whole(column)
        words[:, number] = keys_of(values)
        if values.null_count:
            words[:, -1] += pc.is_null(values).to_numpy(zero_copy_only=False).astype(np.int64) << number
    return frozen(words)
