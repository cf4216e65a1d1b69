"""Files beside Spark's own checkpoint: immutable partials, and small documents that are replaced atomically.

Any file system that pyarrow.fs reaches will do. Partials are Arrow files with one record batch per partial, so that
a reader maps just the partial it needs.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from skypane.places import Place
from skypane.runtime.gather import gathered

PARTIALS = "partials"
DRAFT = ".draft-"
ROW_GROUP = 100_000
"""Rows that are gathered for a row group: windows may have a few rows each, and a row group costs a millisecond."""


@dataclass(frozen=True, slots=True)
class PartialRef:
    """One partial in a file of the store: record batch `index` of `file`, `rows` rows."""

    file: str
    index: int
    rows: int


@dataclass(frozen=True)
class Store:
    """A folder, named by a path or a URI; the value travels to the workers, the connection does not."""

    root: str

    @classmethod
    def at(cls, where: str | os.PathLike[str], field: str = "path") -> Store:
        """Return the store at a path or URI, made absolute; raise ConfigError, naming `field`, if there can be none."""
        place = Place.of(where, field)
        place.check_writable(field)
        return cls(str(place))

    @cached_property
    def place(self) -> Place:
        return Place.of(self.root)

    @property
    def _fs(self) -> tuple[fs.FileSystem, str]:
        return self.place.files

    def __getstate__(self) -> dict[str, Any]:
        return {"root": self.root}

    def path(self, name: str) -> str:
        return f"{self._fs[1]}/{name}" if name else self._fs[1]

    def child(self, name: str) -> Store:
        return Store(str(self.place.child(name)))

    def make(self) -> None:
        """Create the folder, with its parents."""
        self._fs[0].create_dir(self._fs[1], recursive=True)

    def names(self) -> list[str]:
        """Return the names of the files right in the folder, in order."""
        found = self._fs[0].get_file_info(fs.FileSelector(self._fs[1], allow_not_found=True))
        return sorted(info.base_name for info in found if info.type == fs.FileType.File)

    def has(self, name: str) -> bool:
        return bool(self._fs[0].get_file_info(self.path(name)).type != fs.FileType.NotFound)

    def open_output(self, name: str) -> pa.NativeFile:
        return self._fs[0].open_output_stream(self.path(name))

    def remove(self, names: Iterable[str]) -> None:
        """Delete files; those that are gone already are no error."""
        for name in names:
            try:
                self._fs[0].delete_file(self.path(name))
            except FileNotFoundError:
                continue

    def remove_drafts(self) -> None:
        """Delete what write_json() left when it was killed."""
        self.remove(name for name in self.names() if name.startswith(DRAFT))

    def move(self, name: str, target: Store, target_name: str) -> None:
        """Move a file within one file system, over what may be there."""
        self._fs[0].move(self.path(name), target.path(target_name))

    def read_json(self, name: str) -> Any:
        """Return a document; raise FileNotFoundError, or ValueError if it is not whole."""
        with self._fs[0].open_input_stream(self.path(name)) as stream:
            return json.loads(stream.read())

    def write_json(self, name: str, value: Any) -> None:
        """Replace a document atomically: a reader finds the old one or the new one, whole."""
        draft = f"{DRAFT}{name}.{uuid.uuid4().hex}"
        with self.open_output(draft) as stream:
            stream.write(json.dumps(value).encode())
        self.move(draft, self, name)

    def write_partials(self, name: str, partials: Sequence[pa.Table]) -> list[PartialRef]:
        """Write a file of partials, which must share a schema, under a name that no other attempt uses."""
        batches = [_one_batch(partial) for partial in partials]
        with self.open_output(name) as stream, pa.ipc.new_file(stream, batches[0].schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        return [PartialRef(name, index, batch.num_rows) for index, batch in enumerate(batches)]

    def reader(self) -> PartialReader:
        return PartialReader(self)

    def write_parquet(self, name: str, schema: pa.Schema, tables: Iterable[pa.Table]) -> None:
        """Write tables as they come, in row groups that are worth one; dictionaries only for text, where they pay."""
        texts = [field.name for field in schema if _is_text(field.type)]
        with pq.ParquetWriter(self.path(name), schema, filesystem=self._fs[0], use_dictionary=texts or False) as writer:
            for group in gathered(tables, ROW_GROUP):
                writer.write_table(group)

    def read_parquet(self, name: str, schema: pa.Schema) -> pa.Table:
        return pq.read_table(self.path(name), schema=schema, filesystem=self._fs[0])

    def url(self, name: str) -> str:
        """Return a file's name as Spark takes it."""
        return self.place.child(name).spark

    def open_input(self, name: str) -> pa.NativeFile:
        filesystem, _ = self._fs
        if isinstance(filesystem, fs.LocalFileSystem):
            return pa.memory_map(self.path(name))
        return filesystem.open_input_file(self.path(name))


class PartialReader:
    """Reads partials, each file opened once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._files: dict[str, pa.ipc.RecordBatchFileReader] = {}

    def __call__(self, ref: PartialRef) -> pa.Table:
        file = self._files.get(ref.file)
        if file is None:
            file = self._files[ref.file] = pa.ipc.open_file(self._store.open_input(ref.file))
        return pa.Table.from_batches([file.get_batch(ref.index)])


def attempt_name(batch_id: int, task: int) -> str:
    """Return a file name for one attempt of one task: no other attempt has it, now or after a restart."""
    return f"{batch_id:012d}-{task:05d}-{uuid.uuid4().hex}.arrow"


def tables_of(store: Store, name: str) -> Iterator[pa.Table]:
    """Yield every partial in a file."""
    file = pa.ipc.open_file(store.open_input(name))
    for index in range(file.num_record_batches):
        yield pa.Table.from_batches([file.get_batch(index)])


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    if not batches:
        return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in table.schema], schema=table.schema)
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)
