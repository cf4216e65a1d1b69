"""A folder of files: small documents with a checksum, replaced atomically, and parquet files.

It can be on any store of skypane.runtime.stores. On a local disk, documents and the files passed to sync() are
synchronised: they survive a power cut.
"""

from __future__ import annotations

import json
import os
import re
import uuid
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from skypane.locations import Location
from skypane.runtime.stores.file_store import FileStore
from skypane.runtime.stores.store import Kind, Store
from skypane.runtime.table_batching import gathered

DRAFT = ".draft-"
ROW_GROUP = 100_000
"""Rows gathered for a row group: windows may have only a few rows, and each row group costs a millisecond."""

_DOCUMENT = re.compile(rb'\{"crc32": "([0-9a-f]{8})", "document": (.*)\}', re.DOTALL)


@dataclass(frozen=True)
class DocumentStore:
    """A folder, named by a path or a URI; workers receive the name and open a connection of their own."""

    root: str

    @classmethod
    def at(cls, where: str | os.PathLike[str], field: str = "path") -> DocumentStore:
        """Return the store at a path or URI, made absolute.

        Raises ConfigError, naming `field`, if pyarrow does not support the file system.
        """
        place = Location.of(where, field)
        place.check_writable(field)
        return cls(str(place))

    @cached_property
    def place(self) -> Location:
        return Location.of(self.root)

    @property
    def _fs(self) -> tuple[fs.FileSystem, str]:
        return self.place.files

    @property
    def _files(self) -> FileStore:
        return FileStore(*self._fs)

    @property
    def _store(self) -> Store:
        return self._files

    def __getstate__(self) -> dict[str, Any]:
        return {"root": self.root}

    def path(self, name: str) -> str:
        return self._store.path(name)

    def child(self, name: str) -> DocumentStore:
        return DocumentStore(str(self.place.child(name)))

    def make(self) -> None:
        """Create the folder and its parents."""
        self._store.make()

    @property
    def is_local(self) -> bool:
        return isinstance(self._fs[0], fs.LocalFileSystem)

    @property
    def exists(self) -> bool:
        return self.has("")

    def names(self) -> list[str]:
        """Return the names of the files directly in the folder, sorted."""
        return self._listed("file")

    def folders(self) -> list[str]:
        """Return the names of the folders directly in the folder, sorted."""
        return self._listed("folder")

    def _listed(self, kind: Kind) -> list[str]:
        return self._store.listed(kind)

    def has(self, name: str) -> bool:
        return self._store.has(name)

    def open_output(self, name: str) -> pa.NativeFile:
        return self._store.open_output(name)

    def remove(self, names: Iterable[str]) -> None:
        """Delete files; missing ones are ignored."""
        self._store.remove(names)

    def remove_folder(self, name: str) -> None:
        """Delete a folder with its contents; a missing folder is ignored."""
        self._store.remove_folder(name)

    def clear(self) -> None:
        """Delete the contents of the folder; a missing folder is ignored."""
        self._store.clear()

    def sync(self, *names: str) -> None:
        """Wait until files, or the folder's list of files (""), are on disk; does nothing unless the disk is local."""
        for name in names if self.is_local else ():
            handle = os.open(self.path(name), os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)

    def move(self, name: str, target: DocumentStore, target_name: str) -> None:
        """Move a file within one file system, replacing the target if it exists."""
        self._files.move(name, target._files, target_name)

    def read(self, name: str) -> bytes:
        """Return the contents of a file."""
        return self._store.read(name)

    def read_json(self, name: str) -> Any:
        """Return a document; raise FileNotFoundError if it is missing, ValueError if it is damaged."""
        text = self._store.read(name)
        match = _DOCUMENT.fullmatch(text)
        if match is None:
            raise ValueError(f"{len(text)} bytes that are not one document")
        if zlib.crc32(match[2]) != int(match[1], 16):
            raise ValueError("its checksum does not match")
        return json.loads(match[2])

    def write_json(self, name: str, value: Any, *, drafts: DocumentStore | None = None) -> None:
        """Replace a document atomically: a reader finds the whole old document or the whole new one.

        It is written in the folder `drafts`, or else here under a temporary name, and then moved.
        """
        draft = f"{DRAFT}{name}.{uuid.uuid4().hex}"
        document = json.dumps(value).encode()
        drafts = drafts or self
        with drafts.open_output(draft) as stream:
            stream.write(b'{"crc32": "%08x", "document": %s}' % (zlib.crc32(document), document))
        drafts.sync(draft)
        drafts.move(draft, self, name)
        self.sync("")

    def write_parquet(self, name: str, schema: pa.Schema, tables: Iterable[pa.Table]) -> None:
        """Write tables in order, gathered into row groups; only text columns get dictionaries, where they pay off."""
        texts = [field.name for field in schema if _is_text(field.type)]
        with (
            self._store.open_output(name) as stream,
            pq.ParquetWriter(stream, schema, use_dictionary=texts or False) as writer,
        ):
            for group in gathered(tables, ROW_GROUP):
                writer.write_table(group)

    def read_parquet(self, name: str, schema: pa.Schema) -> pa.Table:
        with self._store.open_input(name) as stream:
            return pq.read_table(stream, schema=schema)

    def parquet_schema(self, name: str) -> pa.Schema:
        with self._store.open_input(name) as stream:
            return pq.read_schema(stream)

    def url(self, name: str) -> str:
        """Return the location of a file in the form that Spark accepts."""
        return self.place.child(name).spark

    def open_input(self, name: str) -> pa.NativeFile:
        """Open a file for random access; on a local disk it is memory-mapped instead of copied."""
        return pa.memory_map(self.path(name)) if self.is_local else self._store.open_input(name)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
