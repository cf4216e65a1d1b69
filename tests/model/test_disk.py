"""The disk of the model does what a local one does, through the same calls."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import fs
from tests.model.disk import EMPTY, Disk, Operation
from tests.model.gate import Gate

NAMES = ["a", "b", "a/b", "b/a", "a/b/c"]
PATHS = st.sampled_from(NAMES)


def write(files: Any, path: str, content: bytes) -> None:
    with files.open_output_stream(path) as stream:
        stream.write(content)


def read(files: Any, path: str) -> bytes:
    with files.open_input_stream(path) as stream:
        return bytes(stream.read())


def listed(files: Any, path: str) -> list[tuple[str, fs.FileType]]:
    infos = files.get_file_info(fs.FileSelector(path, allow_not_found=True))
    return sorted((info.base_name, info.type) for info in infos)


CALLS: dict[str, Callable[..., Any]] = {
    "there": lambda files, path: files.get_file_info(path).type,
    "listed": listed,
    "make": lambda files, path: files.create_dir(path, recursive=True),
    "unlink": lambda files, path: files.delete_file(path),
    "remove": lambda files, path: files.delete_dir(path),
    "clear": lambda files, path: files.delete_dir_contents(path),
    "move": lambda files, path, target: files.move(path, target),
    "write": write,
    "read": read,
}
STEPS = st.one_of(
    st.tuples(st.sampled_from(["there", "listed", "make", "make", "unlink", "remove", "clear", "read"]), PATHS),
    st.tuples(st.just("move"), PATHS, PATHS),
    st.tuples(st.just("write"), PATHS, st.sampled_from([b"", b"one", b"two"])),
)


def outcome(files: Any, root: str, name: str, path: str, *more: Any) -> Any:
    """What a call returns, or the kind of its error; which of several errors there are is the system's to choose."""
    others = [f"{root}/{one}" if isinstance(one, str) else one for one in more]
    try:
        return CALLS[name](files, f"{root}/{path}", *others)
    except FileNotFoundError:
        return "not found"
    except OSError:
        return "refused"


@given(st.lists(STEPS, max_size=15))
def test_it_does_what_a_local_disk_does(tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[Any, ...]]):
    disk: Disk = {**EMPTY, "/root": None}

    def perform(operation: Operation) -> Any:
        nonlocal disk
        disk, answer = operation.on(disk)
        return answer

    model, folder = Gate(perform, "test"), tmp_path_factory.mktemp("disk")
    for step in steps:
        assert outcome(model, "/root", *step) == outcome(fs.LocalFileSystem(), str(folder), *step), step
    there = {f"/root/{path.relative_to(folder)}": _content(path) for path in folder.rglob("*")}
    assert disk == {**EMPTY, "/root": None, **there}


def _content(path: Path) -> bytes | None:
    return None if path.is_dir() else path.read_bytes()


def test_a_file_that_is_being_written_moves_with_its_folder():
    disk: Disk = {**EMPTY, "/a": None, "/b": None}
    for name, *arguments in (
        ("create", "/a/x", "me"), ("rename", "/a", "/b/a"), ("fill", "me", b"text"), ("unlink", "/a/x"),
    ):  # fmt: skip
        disk, _ = Operation(name, tuple(arguments)).on(disk)
    assert disk == {**EMPTY, "/b": None, "/b/a": None, "/b/a/x": b"text"}
