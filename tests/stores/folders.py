"""What a folder of a store holds by definition: a dictionary of names and contents."""

from __future__ import annotations

from collections.abc import Iterable

from skypane.runtime.stores.store import ConflictError, Kind


class Folder:
    """The files of a folder, and of the folders in it, by their names with slashes."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def listed(self, kind: Kind) -> list[str]:
        if kind == "file":
            return sorted(name for name in self.files if "/" not in name)
        return sorted({name.partition("/")[0] for name in self.files if "/" in name})

    def has(self, name: str) -> bool:
        return name in self.files

    def read(self, name: str) -> bytes:
        if name not in self.files:
            raise FileNotFoundError(name)
        return self.files[name]

    def put(self, name: str, content: bytes) -> None:
        self.files[name] = content

    def remove(self, names: Iterable[str]) -> None:
        for name in names:
            self.files.pop(name, None)

    def remove_folder(self, name: str) -> None:
        self.remove([one for one in self.files if one.startswith(f"{name}/")])

    def clear(self) -> None:
        self.files.clear()

    def create(self, name: str, content: bytes) -> None:
        if self.files.get(name, content) != content:
            raise ConflictError(name)
        self.files[name] = content

    def replace(self, name: str, content: bytes, known: bytes) -> None:
        if self.files.get(name) not in {known, content}:
            raise ConflictError(name)
        self.files[name] = content
