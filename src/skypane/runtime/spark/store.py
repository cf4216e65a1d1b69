"""A folder of files: small documents with a checksum that are replaced atomically, and parquet.

Any file system that pyarrow.fs reaches will do. On a local disk documents are synchronised, and with sync() other files:
what was there before a power cut is there after it.
"""

from __future__ import annotations

import json
import os
import re
import uuid
import zlib
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from skypane.places import Place
from skypane.runtime.gather import gathered

DRAFT = ".draft-"
ROW_GROUP = 100_000
"""Rows that are gathered for a row group: windows may have a few rows each, and a row group costs a millisecond."""

_DOCUMENT = re.compile(rb'\{"crc32": "([0-9a-f]{8})", "document": (.*)\}', re.DOTALL)


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

    @property
    def is_local(self) -> bool:
        return isinstance(self._fs[0], fs.LocalFileSystem)

    @property
    def exists(self) -> bool:
        return self.has("")

    def names(self) -> list[str]:
        """Return the names of the files right in the folder, in order."""
        return self._listed(fs.FileType.File)

    def folders(self) -> list[str]:
        """Return the names of the folders right in the folder, in order."""
        return self._listed(fs.FileType.Directory)

    def _listed(self, kind: fs.FileType) -> list[str]:
        try:
            entries = self._fs[0].get_file_info(fs.FileSelector(self._fs[1], allow_not_found=True))
        except FileNotFoundError:  # pyarrow minds a folder that comes while it looks
            return []
        return sorted(info.base_name for info in entries if info.type == kind)

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

    def remove_folder(self, name: str) -> None:
        """Delete a folder and what is in it; one that is gone already is no error."""
        with suppress(FileNotFoundError):
            self._fs[0].delete_dir(self.path(name))

    def clear(self) -> None:
        """Delete what is in the folder; one that is gone already is no error."""
        with suppress(FileNotFoundError):
            self._fs[0].delete_dir_contents(self._fs[1])

    def sync(self, *names: str) -> None:
        """Wait until files, or the folder's list of them (""), are on the disk; elsewhere than on a local disk do nothing."""
        for name in names if self.is_local else ():
            handle = os.open(self.path(name), os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)

    def move(self, name: str, target: Store, target_name: str) -> None:
        """Move a file within one file system, over what may be there."""
        self._fs[0].move(self.path(name), target.path(target_name))

    def read_json(self, name: str) -> Any:
        """Return a document; raise FileNotFoundError, or ValueError if it is not as it was written."""
        with self._fs[0].open_input_stream(self.path(name)) as stream:
            text = stream.read()
        match = _DOCUMENT.fullmatch(text)
        if match is None:
            raise ValueError(f"{len(text)} bytes that are not one document")
        if zlib.crc32(match[2]) != int(match[1], 16):
            raise ValueError("its checksum is another")
        return json.loads(match[2])

    def write_json(self, name: str, value: Any, *, drafts: Store | None = None) -> None:
        """Replace a document atomically: a reader finds the old one or the new one, whole.

        It is written in the folder `drafts`, or else here under another name, and then moved.
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
        """Open a file for reading at any place; on a local disk it is mapped, not copied."""
        return pa.memory_map(self.path(name)) if self.is_local else self._fs[0].open_input_file(self.path(name))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
