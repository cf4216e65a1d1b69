"""A table of Iceberg, and commits to it that happen once or not at all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

import pyarrow as pa
import pyarrow.compute as pc

from skypane.operators.window_query import VERSION, WINDOW_START
from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.runtime.spark.sinks.iceberg_catalog import CatalogPlace
from skypane.runtime.spark.sinks.iceberg_rows import fitted
from skypane.runtime.spark.sinks.open_table import BatchNote, OvertakenError
from skypane.runtime.spark.sinks.open_table_rows import stored_rows, stored_schema
from skypane.runtime.spark.sinks.row_changes import is_versioned
from skypane.runtime.spark.sinks.rows_digest import rows_digest
from skypane.types import ConfigError

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table

_OF_NEW_TABLES: Final = {
    # Each batch is a commit with a manifest and a file of metadata, and a stream has many batches.
    "commit.manifest-merge.enabled": "true",
    "write.metadata.delete-after-commit.enabled": "true",
}


@dataclass(frozen=True)
class IcebergTable:
    """A table of a catalog, by its name, namespace.table."""

    place: CatalogPlace
    name: str
    catalog: Catalog = field(repr=False)

    def create(self, schema: pa.Schema) -> None:
        """Create the table for rows of a schema, and its namespace, if they do not exist."""
        if self.catalog.table_exists(self.name):
            return
        namespace, _, _ = self.name.rpartition(".")
        if not self.catalog.namespace_exists(namespace):  # a user who may create tables may lack the right to this
            self.catalog.create_namespace_if_not_exists(namespace)
        self.catalog.create_table_if_not_exists(self.name, stored_schema(schema), properties=_OF_NEW_TABLES)

    def close(self) -> None:
        self.catalog.close()

    def now(self) -> Table:
        """Return the table as it is now, with new credentials if the catalog lends them."""
        return self.catalog.load_table(self.name)

    def properties(self, state: Table) -> Mapping[str, str]:
        return state.properties

    def note(self, state: Table, query: str, role: str) -> BatchNote:
        """Return the note, which is a property as a whole: it outlives the snapshots, which maintenance removes."""
        none = BatchNote(query, role)
        text = state.properties.get(none.property)
        return none if text is None else BatchNote.read(self.name, none.property, text)

    def check_fits(self, state: Table, schema: pa.Schema) -> None:
        fitted(schema, state, self.name)

    def digest(self, answers: BatchRows) -> str:
        return rows_digest(answers.parts())

    def prepared(self, answers: BatchRows) -> BatchFiles:
        return BatchFiles(answers, self.name)

    def commit(self, state: Table, note: BatchNote, batch: BatchFiles | None = None, *, whole: bool = False) -> None:
        """Set the property, remove what the batch replaces and add its files, in one commit."""
        batch_id, files = (None, []) if batch is None else (note.next_batch - 1, batch.of(state))
        replaced = None if batch is None else _replaced(batch.answers, whole=whole)
        _commit(state, files, replaced, {note.property: note.text()}, note.summary(batch_id))


@dataclass
class BatchFiles:
    """The files of data with the rows of a batch, which are written once, whatever number of commits is tried."""

    answers: BatchRows
    name: str
    _written: tuple[int, list[DataFile]] | None = None

    def of(self, table: Table) -> list[DataFile]:
        """Return the files; they are written again if the partitions of the table have changed since."""
        spec = table.metadata.default_spec_id
        if self._written is None or self._written[0] != spec:
            self._written = spec, list(self._write(table))
        return self._written[1]

    def _write(self, table: Table) -> Iterator[DataFile]:
        # PyIceberg has no public function that splits rows by the partitions of a table.
        from pyiceberg.io.pyarrow import _dataframe_to_data_files  # noqa: PLC0415

        if not self.answers.row_count:
            return
        schema = fitted(self.answers.schema, table, self.name)
        batches = stored_rows(self.answers, schema, self.name)
        rows: pa.Table | pa.RecordBatchReader = pa.RecordBatchReader.from_batches(schema, batches)
        if not table.spec().is_unpartitioned():
            rows = rows.read_all()  # all partitions are written at once
            if not rows.num_rows:  # windows that are empty now: PyIceberg cannot divide no rows by hours or buckets
                return
        try:
            yield from _dataframe_to_data_files(table.metadata, rows, table.io)
        except OverflowError:
            raise ConfigError(
                f"table {self.name}: a time is outside of the years 1 to 9999, of which PyIceberg cannot take the "
                f"smallest and the largest: leave such rows out, or cast the column to a text"
            ) from None


def _replaced(answers: BatchRows, *, whole: bool) -> BooleanExpression | None:
    """Return which rows of the table a batch replaces, if any."""
    from pyiceberg.expressions import AlwaysTrue, In  # noqa: PLC0415 - an extra

    if whole:
        return AlwaysTrue()
    if not is_versioned(answers.schema):
        return None
    starts = set[int]()
    for part in answers.parts():
        later = part.filter(pc.greater(part[VERSION], 0))
        starts.update(later[WINDOW_START].cast(pa.int64()).to_pylist())
    # A type checker derives other arguments from the fields of the class.
    return cast("BooleanExpression", cast("Any", In)(WINDOW_START, starts)) if starts else None


def _commit(
    table: Table,
    files: Sequence[DataFile],
    replaced: BooleanExpression | None,
    properties: Mapping[str, str],
    summary: Mapping[str, str],
) -> None:
    """Remove rows from a table, add files and set properties, in one commit that follows the state that `table` has.

    Raises OvertakenError if the table has another state by now; then nothing of this is there, unless the error comes from
    a server whose answer was lost.
    """
    from pyiceberg.exceptions import CommitStateUnknownException  # noqa: PLC0415 - an extra
    from pyiceberg.table import Table as PyIcebergTable  # noqa: PLC0415

    once = cast("Catalog", _OneTry(table.catalog))
    state = PyIcebergTable(table.name(), table.metadata, table.metadata_location, table.io, once, table.config)
    try:
        with state.transaction() as changes:
            if replaced is not None and any(True for _ in state.scan(replaced).plan_files()):
                changes.delete(replaced, dict(summary))
            with changes.update_snapshot(dict(summary)).merge_append() as added:
                for one in files:
                    added.append_data_file(one)
            changes.set_properties(dict(properties))
    except CommitStateUnknownException as error:
        raise OvertakenError(str(error)) from None


class _OneTry:
    """A catalog that raises an error of its own for a commit that came too late.

    PyIceberg would append the same files after the commit that came first, without a look at what that one has added:
    it may be this batch, written by the next driver. It would also remove the manifests of a commit that happened, if a
    server reports a repeated request as a conflict.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def __getattr__(self, name: str) -> Any:
        return getattr(self._catalog, name)

    def commit_table(self, *commit: Any) -> Any:
        from pyiceberg.exceptions import CommitFailedException  # noqa: PLC0415

        try:
            return self._catalog.commit_table(*commit)
        except CommitFailedException as error:
            raise OvertakenError(str(error)) from None
