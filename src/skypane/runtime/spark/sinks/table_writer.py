"""Transactions of a database, one for each micro-batch: its rows, and a note of its number.

The note is a row of the table `skypane_batches` beside the answers: the number of the next batch, and the driver in charge.
The database commits rows and note together or not at all, so a driver that starts reads from the note whether the batch
that it repeats is in the table. A transaction locks the note, and a driver that is not named there writes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from itertools import groupby
from typing import Any, Final, NamedTuple, Self

import pyarrow as pa

from skypane.operators.window_query import ACTION, ADDED, EMPTY, REMOVED, VERSION, WINDOW_START
from skypane.runtime.spark.sinks.batch_digest import BatchDigest
from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.runtime.spark.sinks.database import Database
from skypane.runtime.spark.sinks.folder_owner import QueryStart
from skypane.runtime.spark.sinks.repeated_batch import of_other_rows
from skypane.runtime.spark.sinks.row_changes import are_changes, in_order, is_versioned
from skypane.runtime.spark.sinks.table_rows import Row, Statements, quoted_table, stored_rows
from skypane.types import CheckpointError, ConfigError

NOTES: Final = "skypane_batches"
_OF_NOTES: Final = (
    "query text, role text, target text, next_batch bigint, driver text, digest text, PRIMARY KEY (query, role, target)"
)


class Note(NamedTuple):
    """The first batch that is not in the table, the driver in charge, and the digest of the batch before."""

    next_batch: int
    driver: str
    digest: str


class Writer(NamedTuple):
    """A query that has written to a table, and what."""

    query: str
    role: str


def columns_of(schema: pa.Schema, key: tuple[str, ...]) -> tuple[str, ...]:
    """Return the columns of the table for rows of a schema.

    An empty version of a window has no rows there, and with a key removed rows are not there.
    """
    left_out = {EMPTY} if is_versioned(schema) else {ACTION} if key and are_changes(schema) else set()
    return tuple(name for name in schema.names if name not in left_out)


class TableWriter:
    """The writer of one driver start, with its note of the last batch in the table."""

    def __init__(self, database: Database, table: str, key: tuple[str, ...], claim: QueryStart) -> None:
        self.database, self.table, self.key, self.claim = database, table, key, claim
        self.notes = quoted_table(database, ".".join([*table.split(".")[:-1], NOTES]))
        #: number of the first batch that is not in the table
        self.next_batch = 0
        self._prepared: list[pa.Schema] = []

    @classmethod
    def started(
        cls, database: Database, table: str, key: tuple[str, ...], claim: QueryStart, schemas: Collection[pa.Schema]
    ) -> Self:
        """Return a writer that has taken the note from earlier drivers, and has a table for rows of these schemas."""
        writer = cls(database, table, key, claim)
        with writer._transaction() as cursor:
            writer._take_note(cursor)
            writer._check_alone(cursor, schemas)
            for schema in schemas:
                writer._prepare(cursor, schema)
        return writer

    def write(self, batch_id: int, answers: BatchRows) -> None:
        """Put the rows of a batch into the table, or nothing if they are there.

        Raises CheckpointError if the table has other rows of this batch or if another driver has taken over, and
        OSError if the database does not answer.
        """
        with self._transaction(f"batch {batch_id}") as cursor:
            note = self._note(cursor)
            if note.driver != self.claim.driver:
                raise CheckpointError(
                    f"table {self.table}: another driver of this query has started and taken over: this one stops"
                )
            if batch_id < note.next_batch:
                self._check_repeated(batch_id, answers, note.digest)
            else:
                digest = self._put(cursor, batch_id, answers)
                self._set_note(cursor, Note(batch_id + 1, self.claim.driver, digest))
        self.next_batch = max(self.next_batch, batch_id + 1)

    def _put(self, cursor: Any, batch_id: int, answers: BatchRows) -> str:
        self._prepare(cursor, answers.schema)
        statements = self._statements(answers.schema)
        digest, replaced, seen = BatchDigest(), set[str](), set[tuple[Any, ...]]()
        versioned, applied = is_versioned(answers.schema), bool(self.key) and are_changes(answers.schema)
        if self.claim.role == "front":
            cursor.execute(f"DELETE FROM {statements.name}", ())  # the batch has the whole front
        for part in in_order(answers) if applied else answers.parts():
            for some in stored_rows(part):
                rows = [row for row, _ in some]
                for _, line in some:
                    digest.add(line)
                if versioned:
                    self._remove_windows(cursor, statements, rows, replaced)
                    rows = [row for row in rows if not row[EMPTY]]
                for action, alike in groupby(rows, lambda row: row[ACTION] if applied else ADDED):
                    same = [*alike]
                    if action == REMOVED:
                        statements.remove(cursor, same)
                    else:
                        self._check_key(batch_id, same, seen)
                        statements.put(cursor, same)
        return str(digest)

    def _remove_windows(self, cursor: Any, statements: Statements, rows: list[Row], replaced: set[str]) -> None:
        """Delete the earlier versions of windows, of each window once."""
        for start in {row[WINDOW_START]: None for row in rows if row[VERSION] > 0}:
            if start not in replaced:
                replaced.add(start)
                cursor.execute(*statements.delete({WINDOW_START: start}))

    def _check_key(self, batch_id: int, rows: list[Row], seen: set[tuple[Any, ...]]) -> None:
        """Raise ConfigError if rows of one window have the same key: only one of them would be in the table."""
        if not (self.key and rows and WINDOW_START in rows[0]):
            return
        for row in rows:
            values = tuple(row[name] for name in (WINDOW_START, *self.key))
            if values in seen:
                shown = ", ".join(f"{name}={row[name]!r}" for name in dict.fromkeys((WINDOW_START, *self.key)))
                raise ConfigError(
                    f"table {self.table}: several rows of batch {batch_id} have the key {shown}, and a table has one of "
                    f"them: add columns to key by which the rows of a window differ, or leave key out to keep all rows"
                )
            seen.add(values)

    def _prepare(self, cursor: Any, schema: pa.Schema) -> None:
        """Create the table for rows of a schema, or raise ConfigError if it lacks columns."""
        if schema in self._prepared:
            return
        statements = self._statements(schema)
        there = self._columns_or_create(cursor, self.table, statements.create(schema))
        if missing := [name for name in statements.columns if there and name not in there]:
            added = ", ".join(f"ADD COLUMN {statements.declared(schema.field(name))}" for name in missing)
            raise ConfigError(
                f"table {self.table} of {self.database} has no column {', '.join(map(repr, missing))}, which the rows "
                f"have: ALTER TABLE {statements.name} {added}, or name another table"
            )
        self._prepared.append(schema)

    def _columns_or_create(self, cursor: Any, table: str, statement: str) -> list[str]:
        """Return the columns of a table; none if there was no such table, and the statement has created it."""
        if there := self.database.columns(cursor, table):
            return there
        self.database.lock_creation(cursor)
        there = self.database.columns(cursor, table)
        if not there:
            cursor.execute(statement, ())
        return there

    def _statements(self, schema: pa.Schema) -> Statements:
        return Statements(self.database, self.table, columns_of(schema, self.key), self.key)

    def _take_note(self, cursor: Any) -> None:
        notes = ".".join([*self.table.split(".")[:-1], NOTES])
        self._columns_or_create(cursor, notes, f"CREATE TABLE {self.notes} ({_OF_NOTES})")
        marks = ", ".join([self.database.mark] * 6)
        values = (*self._place, 0, self.claim.driver, "")
        cursor.execute(f"INSERT INTO {self.notes} VALUES ({marks}) ON CONFLICT DO NOTHING", values)
        note = self._note(cursor)
        self.claim.check()  # while the note is locked: a driver that was fenced must not take it from the next one
        if note.next_batch > self.claim.next_batch + 1:
            raise CheckpointError(
                f"table {self.table} has the batches of this query up to {note.next_batch - 1}, and the next batch of "
                f"the checkpoint is {self.claim.next_batch}: the checkpoint is older than the output. Restore its "
                f"newest copy, or start with a new checkpoint and a new table"
            )
        self._set_note(cursor, note._replace(driver=self.claim.driver))
        self.next_batch = note.next_batch

    def _check_alone(self, cursor: Any, schemas: Collection[pa.Schema]) -> None:
        """Raise CheckpointError if this query or another one that has the table would remove rows of the other."""
        mark = self.database.mark
        cursor.execute(f"SELECT query, role FROM {self.notes} WHERE target = {mark}", (self.table,))
        writers = dict.fromkeys(Writer(*row) for row in [*cursor.fetchall(), *self._under_other_names(cursor)])
        others = [one for one in writers if one != (self.claim.query, self.claim.role)]
        alone = self.claim.role == "front" or any(
            is_versioned(schema) or (self.key and are_changes(schema)) for schema in schemas
        )
        other = next((one for one in others if alone or one.role == "front"), None)
        if other is not None:
            raise CheckpointError(
                f"table {self.table} has the {other.role} of query {other.query}, and a front, versions of windows and "
                f"changes remove rows that are there: name another table, or, if that query will not start again, "
                f"empty this one and delete its row of {self.notes}"
            )

    def _under_other_names(self, cursor: Any) -> Iterator[tuple[str, str]]:
        """Yield query and role of the notes of this table under any of its names, in whatever schema they are."""
        for notes in self.database.namesakes(cursor, NOTES):
            schema = notes.rpartition(".")[0]
            cursor.execute(f"SELECT query, role, target FROM {quoted_table(self.database, notes)}", ())
            for query, role, target in cursor.fetchall():
                within = target if "." in target or not schema else f"{schema}.{target}"
                name = within if self.database.columns(cursor, within) else target
                if self.database.is_same(cursor, name, self.table):
                    yield query, role

    @property
    def _place(self) -> tuple[str, str, str]:
        return self.claim.query, self.claim.role, self.table

    def _note(self, cursor: Any) -> Note:
        """Return the note, and lock it until the end of the transaction."""
        mark = self.database.mark
        cursor.execute(
            f"SELECT next_batch, driver, digest FROM {self.notes} "
            f"WHERE query = {mark} AND role = {mark} AND target = {mark}{self.database.lock}",
            self._place,
        )
        found = cursor.fetchone()
        if found is None:
            raise CheckpointError(
                f"table {self.notes} has lost its row of this query: restore it, or start with a new checkpoint and a "
                f"new table"
            )
        return Note(*found)

    def _set_note(self, cursor: Any, note: Note) -> None:
        mark = self.database.mark
        cursor.execute(
            f"UPDATE {self.notes} SET next_batch = {mark}, driver = {mark}, digest = {mark} "
            f"WHERE query = {mark} AND role = {mark} AND target = {mark}",
            (*note, *self._place),
        )

    def _check_repeated(self, batch_id: int, answers: BatchRows, there: str) -> None:
        digest = BatchDigest()
        lines = (line for part in answers.parts() for some in stored_rows(part) for _, line in some)
        for line in lines:
            digest.add(line)
        if str(digest) != there:
            raise of_other_rows(batch_id, f"table {self.table}", str(digest), there)

    @contextmanager
    def _transaction(self, what: str = "") -> Iterator[Any]:
        """Yield a cursor, and replace errors of the client by ones that name the table and the remedy."""
        try:
            with self.database.transaction() as cursor:
                yield cursor
        except self.database.error as error:
            raise self._explained(error, what) from None

    def _explained(self, error: Exception, what: str) -> Exception:
        why = " ".join(str(error).split())
        if self.database.lacks_unique_key(error):
            return ConfigError(
                f"table {self.table} has no unique constraint on its key ({why}): CREATE UNIQUE INDEX ON "
                f"{quoted_table(self.database, self.table)} ({', '.join(map(self.database.quoted, self.key))})"
            )
        if not isinstance(error, self.database.passing_errors):
            return ConfigError(f"table {self.table} of {self.database} refuses {what or 'the start'}: {why}")
        if not what:
            return ConfigError(
                f"{self.database} cannot be used ({why}); check the address, the options of the login, and whether "
                f"another driver still runs"
            )
        return OSError(
            f"table {self.table} of {self.database} did not take {what} ({why}); it has none of its rows, or all, and "
            f"takes the batch when the query is started again"
        )
