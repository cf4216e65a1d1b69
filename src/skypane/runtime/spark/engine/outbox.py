"""Rows that are committed and wait in the checkpoint for a file of several batches: the outbox of a rolling sink.

    a batch is committed    its manifest names its rows, in a file among the partials
    the file is due         the sink gets all rows that wait, under the number of the last committed batch
    it is there             the manifest of that batch is written again, without them; then their files are removed

A sink so gets committed rows only, once, and nothing of it is ever replaced. After a kill before the last step the next
start delivers the same rows under the same number, before any other batch, as no batch follows until the manifest is
written. The first batch of a start is delivered before its commit, as without an outbox: an earlier start, or a job
without roll=, may have delivered a part of it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self, TypeAlias, overload

import pyarrow as pa
import pyarrow.parquet as pq

from skypane.runtime.spark.document_store import DocumentStore, parquet_bytes
from skypane.runtime.spark.engine import partials
from skypane.runtime.spark.engine.partials import PartialReader, PartialReference, attempt_name
from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.runtime.spark.sinks.sink import Sink

WAITING: Final = 99_994
"""Task number, in a file's name, of rows that wait."""

Waiting: TypeAlias = Mapping[str, tuple[PartialReference, ...]]
"""The rows that wait, in order, by the role of their sink; each reference is to a file of parquet."""


class Outbox:
    """Keeps the rows of rolling sinks, and knows since when; the rows that wait are a part of the committed state."""

    def __init__(self, sinks: Mapping[str, Sink], store: DocumentStore) -> None:
        """`store`: the folder of the partials."""
        self._store = store
        self._rolls = {role: roll for role, sink in sinks.items() if (roll := sink.rolling()) is not None}
        self._since: dict[str, float] = {}
        self._schemas: dict[str, pa.Schema] = {}

    def takes(self, role: str) -> bool:
        """Return whether rows for a sink wait for a file."""
        return role in self._rolls

    def fits(self, sent: Mapping[str, BatchRows]) -> bool:
        """Return whether rows have the columns of those that wait: a file has one schema."""
        return all(self._schemas.get(role, rows.schema).equals(rows.schema) for role, rows in sent.items())

    def add(self, waiting: Waiting, sent: Mapping[str, BatchRows], batch_id: int) -> Waiting:
        """Write the rows of a batch to files that the commit synchronises, and return all that wait with them."""
        after = dict(waiting)
        for role, rows in sent.items():
            if rows.row_count:
                name = attempt_name(batch_id, WAITING)
                after[role] = (*after.get(role, ()), *partials.write_blocks(self._store, name, _blocks(rows)))
                self._since.setdefault(role, time.monotonic())
                self._schemas[role] = rows.schema
        return after

    def is_due(self, waiting: Waiting) -> bool:
        """Return whether rows are to be delivered now."""
        now = time.monotonic()
        return any(
            self._rolls[role].is_due(now - self._since.get(role, now), sum(ref.size for ref in refs), len(refs))
            for role, refs in waiting.items()
            if role in self._rolls
        )

    def emptied(self) -> None:
        """Note that all rows were delivered."""
        self._since.clear()
        self._schemas.clear()

    def rows(self, refs: Sequence[PartialReference]) -> BatchRows:
        """Return rows that wait, for their sink; one part of them is in memory at a time."""
        parts = WaitingTables.of(self._store, tuple(refs))
        return BatchRows(parts.schema, sum(ref.rows for ref in refs), tables=parts)


@dataclass(frozen=True)
class WaitingTables(Sequence[pa.Table]):
    """The tables of rows that wait, each read when it is taken.

    Raises CheckpointError, naming the file, if one is damaged or gone.
    """

    store: DocumentStore
    refs: tuple[PartialReference, ...]
    schema: pa.Schema

    @classmethod
    def of(cls, store: DocumentStore, refs: tuple[PartialReference, ...]) -> Self:
        """Return the tables of rows that wait, whose schema the first file has."""
        return cls(store, refs, pq.read_schema(_input(store, refs[0])))

    def __len__(self) -> int:
        return len(self.refs)

    @overload
    def __getitem__(self, index: int) -> pa.Table: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[pa.Table]: ...
    def __getitem__(self, index: int | slice) -> pa.Table | Sequence[pa.Table]:
        if isinstance(index, slice):
            return replace(self, refs=self.refs[index])
        return pq.read_table(_input(self.store, self.refs[index]), schema=self.schema)


def _input(store: DocumentStore, ref: PartialReference) -> pa.BufferReader:
    return pa.BufferReader(PartialReader(store).read(ref))


def files_of(waiting: Waiting) -> frozenset[str]:
    """Return the files that hold rows that wait."""
    return frozenset(ref.file for refs in waiting.values() for ref in refs)


def snapshot(waiting: Waiting) -> dict[str, list[list[object]]]:
    """Return the rows that wait as a JSON value."""
    return {role: [ref.snapshot() for ref in refs] for role, refs in waiting.items()}


def restored(saved: Mapping[str, Sequence[object]]) -> Waiting:
    """Return the rows that wait from a snapshot; raise CheckpointError if a reference was changed by hand."""
    return {role: tuple(map(PartialReference.restored, refs)) for role, refs in saved.items()}


def _blocks(rows: BatchRows) -> Iterator[tuple[pa.Buffer, int]]:
    """Yield the parquet files of a batch, each with its number of rows: those of workers as they are, or one of all tables."""
    if rows.store is None:
        yield pa.py_buffer(parquet_bytes(rows.schema, rows.tables)), rows.row_count
        return
    for name in rows.files:
        content = pa.py_buffer(rows.store.read(name))
        yield content, pq.read_metadata(pa.BufferReader(content)).num_rows
