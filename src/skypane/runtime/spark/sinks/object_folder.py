"""Batches in a folder of an object store: each file is created by one conditional write, and none is moved or deleted.

    <output>/<prefix>-<batch>-<n>.<format>   numbered without gaps
    <output>/_staging/<driver>/              files of workers, until they are copied

A driver that was fenced may still deliver one batch: the one that it could not commit, which is the first of the driver
after it. Both create the files of that batch in the order of their numbers. The driver in charge adds the rows that are
missing, and always creates a file of its first batch, without rows if none are missing. From then on the fenced driver
finds its next number taken, and stops: it can add nothing to what is complete.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, takewhile
from typing import Final

import pyarrow as pa

from skypane.runtime.spark.document_store import DocumentStore, parquet_bytes
from skypane.runtime.spark.sinks import text_format
from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.runtime.spark.sinks.folder_owner import STAGE
from skypane.runtime.spark.sinks.repeated_batch import missing_rows, same_lines
from skypane.runtime.stores.object_store import ObjectStore
from skypane.runtime.stores.store import ConflictError

log = logging.getLogger(__name__)

_TRIES: Final = 10


@dataclass(frozen=True)
class ObjectBatch:
    """The files of one batch in the folder `target`, by the beginning `prefix` of their names.

    one_file  whether the files of several workers become one
    """

    target: DocumentStore
    prefix: str
    format: str
    one_file: bool

    def deliver(self, answers: BatchRows) -> None:
        """Create the files of a batch, or those of its rows that are not there yet."""
        repeated = answers.first
        for _ in range(_TRIES):
            published = self._published() if repeated else []
            try:
                if published:
                    self._add(answers, published)
                else:
                    self._create(answers)
            except ConflictError:  # this driver is fenced, or finds a copy of its own whose answer was lost
                answers.check()
                repeated = True
                continue
            if self._are_staged(answers):
                _objects(answers.store).remove(answers.files)
            return
        raise OSError(
            f"{self.target.path(self._name(0))}: other drivers have created files of this batch {_TRIES} times"
        )

    def _create(self, answers: BatchRows) -> None:
        if self._is_copied(answers):
            for index, file in enumerate(answers.files):
                _objects(answers.store).copy(file, self._objects, self._name(index))
        elif answers.row_count or answers.first:
            self._objects.create(self._name(0), self._content(answers.schema, answers.parts()))

    def _is_copied(self, answers: BatchRows) -> bool:
        """Return whether the files of workers are the files of the batch."""
        is_joined = self.one_file and len(answers.files) > 1
        return bool(answers.files) and self._are_staged(answers) and not is_joined

    def _are_staged(self, answers: BatchRows) -> bool:
        """Return whether workers have written the rows to a staging folder of this one."""
        stage = self.target.child(STAGE).root
        return self.format == "parquet" and answers.store is not None and answers.store.root.startswith(f"{stage}/")

    def _add(self, answers: BatchRows, published: list[str]) -> None:
        missing = self._missing(answers, published)
        answers.check()  # what is there may be from the driver after this one
        if missing is None:
            log.warning("batch %s comes with other rows than %s has: its files change", self.prefix, self.target.root)
            self._replace(answers, published)
            missing = answers.schema.empty_table()
        if missing.num_rows or answers.first:
            self._objects.create(self._name(len(published)), self._content(answers.schema, [missing]))

    def _missing(self, answers: BatchRows, published: Sequence[str]) -> pa.Table | None:
        """Return the rows that the files of a batch lack; None if they have others, or other columns."""
        if self.format == "parquet":
            if any(not self.target.parquet_schema(name).equals(answers.schema) for name in published):
                return None
            tables = [self.target.read_parquet(name, answers.schema) for name in published]
            return missing_rows(answers, pa.concat_tables(tables))
        nothing = self._content(answers.schema, [])
        texts = [text for text in map(self.target.read, published) if text != nothing]
        if not texts:
            return answers.table()
        rows = self._content(answers.schema, answers.parts())
        return answers.schema.empty_table() if len(texts) == 1 and same_lines(rows, texts[0]) else None

    def _replace(self, answers: BatchRows, published: Sequence[str]) -> None:
        """Let the first file have all rows and the others none; none is deleted, so that no number becomes free."""
        first, *others = published
        self._objects.put(first, self._content(answers.schema, answers.parts()))
        for name in others:
            self._objects.put(name, self._content(answers.schema, []))

    def _content(self, schema: pa.Schema, tables: Iterator[pa.Table] | Sequence[pa.Table]) -> bytes:
        if self.format == "parquet":
            return parquet_bytes(schema, tables)
        stream = pa.BufferOutputStream()
        write = text_format.write_csv if self.format == "csv" else text_format.write_json
        write(pa.concat_tables([schema.empty_table(), *tables]), stream)
        return bytes(stream.getvalue())

    def _published(self) -> list[str]:
        return list(takewhile(self.target.has, map(self._name, count())))

    def _name(self, index: int) -> str:
        return f"{self.prefix}-{index:05d}.{self.format}"

    @property
    def _objects(self) -> ObjectStore:
        return _objects(self.target)


def _objects(store: DocumentStore | None) -> ObjectStore:
    if store is None or store.objects is None:
        raise TypeError(f"{store} is not in an object store")
    return store.objects
