"""A table of Delta Lake, and commits to it that happen once or not at all.

The number of the last batch is the version of a transaction of Delta (`txn`), which is committed with the batch's rows,
and a second one holds the digest of these rows; the driver in charge is a property of the table. Delta refuses a commit
if another one has set the same transactions, or a property, since the state that it follows. Commits of other writers that
only add rows do not come in the way: delta-rs puts ours after them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from skypane.locations import Location
from skypane.operators.window_query import VERSION, WINDOW_START
from skypane.runtime.environment import held
from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.runtime.spark.sinks.delta_rows import fitted
from skypane.runtime.spark.sinks.open_table import BatchNote, OvertakenError
from skypane.runtime.spark.sinks.open_table_rows import stored_rows, stored_schema
from skypane.runtime.spark.sinks.row_changes import is_versioned
from skypane.runtime.spark.sinks.rows_digest import rows_digest
from skypane.types import ConfigError

if TYPE_CHECKING:
    from deltalake import CommitProperties
    from deltalake import DeltaTable as Table

_DIGEST: Final = ".digest"
"""End of the name of the transaction that holds the digest of a batch."""

_LOG: Final = "_delta_log"


@dataclass(frozen=True)
class DeltaTable:
    """A table by the folder that it is in.

    name     as statements of Spark's SQL name it
    options  of the client of an object store; "$NAME" is an environment variable
    """

    name: str
    place: Location
    options: Mapping[str, str] = field(repr=False)

    def create(self, schema: pa.Schema) -> None:
        from deltalake import DeltaTable as Table  # noqa: PLC0415 - an extra

        if Table.is_deltatable(self._address, self._options):
            return
        self._check_free()
        try:
            Table.create(self._address, stored_schema(schema), "ignore", storage_options=self._options)
        except Exception:
            if not Table.is_deltatable(self._address, self._options):  # else another driver has created it meanwhile
                raise

    def _check_free(self) -> None:
        """Raise ConfigError if the folder has other files: Delta's VACUUM would delete them."""
        if not self.place.is_local:
            return
        others = (one for one in Path(str(self.place)).glob("*") if one.name != _LOG)
        if there := next(others, None):
            raise ConfigError(
                f"table {self.name} does not exist, and its folder has other files, such as {there.name}: name an empty "
                f"folder, or one that does not exist"
            )

    def close(self) -> None:
        """Do nothing: delta-rs keeps no connections of a table's own."""

    def now(self) -> Table:
        """Return the table as it is now, with its whole log: one that was made again in the same folder has other commits."""
        from deltalake import DeltaTable as Table  # noqa: PLC0415

        return Table(self._address, storage_options=self._options)

    def properties(self, state: Table) -> Mapping[str, str]:
        return state.metadata().configuration

    def note(self, state: Table, query: str, role: str) -> BatchNote:
        """Return the note: the driver is in a property, the number and the digest of the last batch are transactions."""
        none = BatchNote(query, role)
        text, last = self.properties(state).get(none.property), state.transaction_version(none.property)
        if text is None or last is None:
            return none
        of_start = BatchNote.read(self.name, none.property, text)
        digest = state.transaction_version(none.property + _DIGEST)
        return replace(of_start, next_batch=last + 1, digest="" if digest is None else str(digest))

    def check_fits(self, state: Table, schema: pa.Schema) -> None:
        fitted(schema, state, self.name)

    def digest(self, answers: BatchRows) -> str:
        """Return a number of 63 bits, as the version of a transaction takes."""
        hashed = blake2b(rows_digest(answers.parts()).encode(), digest_size=8).digest()
        return str(int.from_bytes(hashed) >> 1)

    def prepared(self, answers: BatchRows) -> BatchRows:
        return answers

    def commit(self, state: Table, note: BatchNote, batch: BatchRows | None = None, *, whole: bool = False) -> None:
        from deltalake.exceptions import CommitFailedError  # noqa: PLC0415

        try:
            if batch is None:
                state.alter.set_table_properties(
                    {note.property: note.text()}, raise_if_not_exists=False, commit_properties=_described(note, None)
                )
            else:
                self._add(state, batch, _described(note, note.next_batch - 1), whole=whole)
        except CommitFailedError as error:
            raise OvertakenError(str(error)) from None

    def _add(self, state: Table, batch: BatchRows, described: CommitProperties, *, whole: bool) -> None:
        from deltalake import write_deltalake  # noqa: PLC0415

        schema = fitted(batch.schema, state, self.name)
        predicate = None if whole else _replaced(batch)
        with _own_errors(stored_rows(batch, schema, self.name)) as batches:
            rows = pa.RecordBatchReader.from_batches(schema, batches)
            if whole or predicate:
                write_deltalake(state, rows, mode="overwrite", predicate=predicate, commit_properties=described)
            else:
                write_deltalake(state, rows, mode="append", commit_properties=described)

    @property
    def _address(self) -> str:
        return str(self.place.resolved())

    @property
    def _options(self) -> dict[str, str]:
        return {
            name: held(text, f"option {name} of table {self.name}", os.environ) for name, text in self.options.items()
        }


@contextmanager
def _own_errors(batches: Iterator[pa.RecordBatch]) -> Iterator[Iterator[pa.RecordBatch]]:
    """Yield `batches`; an error that they raise is raised as it is, and not as the client's text about it."""
    raised: list[Exception] = []

    def kept() -> Iterator[pa.RecordBatch]:
        try:
            yield from batches
        except Exception as error:
            raised.append(error)
            raise

    try:
        yield kept()
    except Exception:
        if raised:
            raise raised[0] from None
        raise


def _described(note: BatchNote, batch_id: int | None) -> CommitProperties:
    """Return what goes with a commit: its transactions, and by which names it is found in the table's history."""
    from deltalake import CommitProperties, Transaction  # noqa: PLC0415

    transactions = [Transaction(note.property, note.next_batch - 1)]
    if note.digest:
        transactions.append(Transaction(note.property + _DIGEST, int(note.digest)))
    return CommitProperties(custom_metadata=note.summary(batch_id), app_transactions=transactions)


def _replaced(batch: BatchRows) -> str | None:
    """Return the predicate for the rows of all windows of a batch, if it has a later version of one.

    Delta adds no other rows than it may replace, so the windows that are answered for the first time are among them.
    """
    if not is_versioned(batch.schema):
        return None
    starts, latest = set[int](), 0
    for part in batch.parts():
        starts.update(pc.unique(part[WINDOW_START].cast(pa.int64())).to_pylist())
        latest = max(latest, pc.max(part[VERSION]).as_py() or 0)
    zone = "None" if batch.schema.field(WINDOW_START).type.tz is None else 'Some("UTC")'
    values = ", ".join(f"arrow_cast({start}, 'Timestamp(Microsecond, {zone})')" for start in sorted(starts))
    return f"{WINDOW_START} IN ({values})" if latest else None
