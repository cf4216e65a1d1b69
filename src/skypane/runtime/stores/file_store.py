"""A folder on a file system that pyarrow.fs reaches: a local disk, or HDFS."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyarrow import fs

from skypane.runtime.stores.store import Kind, Store

_TYPES: Final = {"file": fs.FileType.File, "folder": fs.FileType.Directory}


@dataclass(frozen=True, slots=True)
class FileStore(Store):
    """A folder, by its path in `filesystem`."""

    filesystem: fs.FileSystem
    folder: str

    def path(self, name: str) -> str:
        return f"{self.folder.rstrip('/')}/{name}" if name else self.folder

    def make(self) -> None:
        self.filesystem.create_dir(self.folder, recursive=True)

    def listed(self, kind: Kind) -> list[str]:
        try:
            entries = self.filesystem.get_file_info(fs.FileSelector(self.folder, allow_not_found=True))
        except FileNotFoundError:  # pyarrow raises if the folder appears while it is listed
            return []
        return sorted(info.base_name for info in entries if info.type == _TYPES[kind])

    def has(self, name: str) -> bool:
        return bool(self.filesystem.get_file_info(self.path(name)).type != fs.FileType.NotFound)

    def read(self, name: str) -> bytes:
        with self.filesystem.open_input_stream(self.path(name)) as stream:
            return bytes(stream.read())

    def open_input(self, name: str) -> pa.NativeFile:
        return self.filesystem.open_input_file(self.path(name))

    def open_output(self, name: str) -> pa.NativeFile:
        return self.filesystem.open_output_stream(self.path(name))

    def remove(self, names: Iterable[str]) -> None:
        for name in names:
            with suppress(FileNotFoundError):
                self.filesystem.delete_file(self.path(name))

    def remove_folder(self, name: str) -> None:
        with suppress(FileNotFoundError):
            self.filesystem.delete_dir(self.path(name))

    def clear(self) -> None:
        with suppress(FileNotFoundError):
            self.filesystem.delete_dir_contents(self.folder)

    def move(self, name: str, target: FileStore, target_name: str) -> None:
        """Move a file or folder within the file system, replacing a target file; one stroke on a local disk."""
        self.filesystem.move(self.path(name), target.path(target_name))
