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
from skypane.runtime.stores import object_client
from skypane.runtime.stores.file_store import FileStore
from skypane.runtime.stores.object_store import ObjectStore, Stamp
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

        Raises ConfigError, naming `field`, if the file system is not supported, or its client is not installed.
        """
        place = Location.of(where, field)
        place.check_writable(field)
        if place.is_object:
            object_client.check_installed(place, field)
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

    @cached_property
    def objects(self) -> ObjectStore | None:
        """The folder in an object store, which has conditional writes; None on a file system."""
        return ObjectStore(self.place) if self.place.is_object else None

    @property
    def _store(self) -> Store:
        return self.objects or self._files

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
        return self.objects is None and isinstance(self._fs[0], fs.LocalFileSystem)

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
        return _decoded(self._store.read(name))

    def write_json(self, name: str, value: Any, *, drafts: DocumentStore | None = None) -> None:
        """Replace a document atomically: a reader finds the whole old document or the whole new one.

        It is written in the folder `drafts`, or else here under a temporary name, and then moved. In an object store
        it is written in its place, with one request.
        """
        if self.objects is not None:
            self.objects.put(name, _encoded(value))
            return
        draft = f"{DRAFT}{name}.{uuid.uuid4().hex}"
        drafts = drafts or self
        with drafts.open_output(draft) as stream:
            stream.write(_encoded(value))
        drafts.sync(draft)
        drafts.move(draft, self, name)
        self.sync("")

    def read_version(self, name: str) -> tuple[Any, Stamp]:
        """Return a document of an object store as read_json() does, and its version."""
        text, stamp = self._conditional.read_stamped(name)
        return _decoded(text), stamp

    def write_version(self, name: str, value: Any, known: Stamp | None) -> Stamp:
        """Replace the version `known` of a document, or create it if None, with one conditional write.

        Returns the new version; raises ConflictError if another one is there.
        """
        if known is None:
            return self._conditional.create(name, _encoded(value))
        return self._conditional.replace(name, _encoded(value), known)

    def version(self, name: str) -> Stamp | None:
        """Return the version of a document of an object store; None if it is missing."""
        return self._conditional.stamp(name)

    @property
    def _conditional(self) -> ObjectStore:
        if self.objects is None:
            raise TypeError(f"{self.root} is on a file system, which has no conditional writes")
        return self.objects

    def write_parquet(self, name: str, schema: pa.Schema, tables: Iterable[pa.Table]) -> None:
        """Write tables in order, gathered into row groups; only text columns get dictionaries, where they pay off."""
        with self._store.open_output(name) as stream:
            _write_parquet(stream, schema, tables)

    def read_parquet(self, name: str, schema: pa.Schema) -> pa.Table:
        with self._store.open_input(name) as stream:
            return pq.read_table(stream, schema=schema)

    def parquet_schema(self, name: str) -> pa.Schema:
        with self._store.open_input(name) as stream:
            return pq.read_schema(stream)

    def url(self, name: str) -> str:
        """Return the location of a file in the form that Spark's readers accept."""
        return self.place.child(name).spark_pattern

    def open_input(self, name: str) -> pa.NativeFile:
        """Open a file for random access; on a local disk it is memory-mapped instead of copied."""
        return pa.memory_map(self.path(name)) if self.is_local else self._store.open_input(name)


def _encoded(value: Any) -> bytes:
    document = json.dumps(value).encode()
    return b'{"crc32": "%08x", "document": %s}' % (zlib.crc32(document), document)


def _decoded(text: bytes) -> Any:
    match = _DOCUMENT.fullmatch(text)
    if match is None:
        raise ValueError(f"{len(text)} bytes that are not one document")
    if zlib.crc32(match[2]) != int(match[1], 16):
        raise ValueError("its checksum does not match")
    return json.loads(match[2])


def parquet_bytes(schema: pa.Schema, tables: Iterable[pa.Table]) -> bytes:
    """Return the contents of a file as write_parquet() writes it."""
    stream = pa.BufferOutputStream()
    _write_parquet(stream, schema, tables)
    return bytes(stream.getvalue())


def _write_parquet(stream: pa.NativeFile, schema: pa.Schema, tables: Iterable[pa.Table]) -> None:
    texts = [field.name for field in schema if _is_text(field.type)]
    with pq.ParquetWriter(stream, schema, use_dictionary=texts or False) as writer:
        for group in gathered(tables, ROW_GROUP):
            writer.write_table(group)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
