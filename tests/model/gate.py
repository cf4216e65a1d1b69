"""The gate through which a Store reaches a disk of the model: what pyarrow's file systems offer, one stroke after the other."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, NamedTuple, Self

from pyarrow import fs
from tests.model.disk import Failed, Operation


class Info(NamedTuple):
    """The file or folder under a name."""

    base_name: str
    type: fs.FileType


_TYPES = {"file": fs.FileType.File, "folder": fs.FileType.Directory, None: fs.FileType.NotFound}


class Gate:
    """Has each stroke done by `perform`, which returns what the disk says; `who` names the files that it opens."""

    def __init__(self, perform: Callable[[Operation], Any], who: str) -> None:
        self._perform = perform
        self._who = who
        #: how many files were opened, and how many names drawn: they decide what is next called how
        self.opened = 0
        self.drawn = 0

    def __call__(self, name: str, *arguments: Any) -> Any:
        answer = self._perform(Operation(name, arguments))
        if isinstance(answer, Failed):
            raise answer.error()
        return answer

    def get_file_info(self, what: fs.FileSelector | str) -> Any:
        if isinstance(what, str):
            return Info(what.rpartition("/")[2], _TYPES[self("kind", what)])
        try:
            return [Info(name, _TYPES[kind]) for name, kind in self._listed(what.base_dir)]
        except (FileNotFoundError, NotADirectoryError):
            if what.allow_not_found and self("kind", what.base_dir) is None:
                return []
            raise

    def _listed(self, path: str) -> list[tuple[str, str]]:
        return sorted(self("names", path))

    def create_dir(self, path: str, *, recursive: bool) -> None:
        assert recursive
        self("make", path)

    def delete_file(self, path: str) -> None:
        self("unlink", path)

    def delete_dir(self, path: str) -> None:
        self.delete_dir_contents(path)
        self("remove_folder", path)

    def delete_dir_contents(self, path: str) -> None:
        for name, kind in self._listed(path):
            (self.delete_dir if kind == "folder" else self.delete_file)(f"{path}/{name}")

    def move(self, path: str, target: str) -> None:
        self("rename", path, target)

    def open_input_stream(self, path: str) -> io.BytesIO:
        return io.BytesIO(self("read", path))

    def open_output_stream(self, path: str) -> _Writer:
        self.opened += 1
        writer = f"{self._who}-{self.opened}"
        self("create", path, writer)
        return _Writer(lambda content: self("fill", writer, content))


class _Writer:
    """A file that is being written; what was written is in it when it is closed."""

    def __init__(self, fill: Callable[[bytes], None]) -> None:
        self._fill = fill
        self._content = b""

    def write(self, content: Any) -> None:
        self._content += bytes(memoryview(content))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: object, *_: object) -> None:
        if error is None:
            self._fill(self._content)
