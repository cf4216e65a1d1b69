"""The laws of a store, which its interface lists: the same tests for every implementation."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import fs
from tests.stores.folders import Folder

from skypane.runtime.stores.file_store import FileStore
from skypane.runtime.stores.store import Store

Made = Callable[[str], Store]
NAMES = ["a", "b", "b c%20é", "deep/a", "deep/er/b", "other/a"]
names = st.sampled_from(NAMES)
contents = st.binary(max_size=20)
changes = st.one_of(
    st.tuples(st.just("write"), names, contents),
    st.tuples(st.just("remove"), st.lists(names, max_size=3)),
    st.tuples(st.just("remove_folder"), st.sampled_from(["deep", "other", "none"])),
    st.tuples(st.just("clear")),
)


@pytest.fixture(scope="module", params=["disk"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Make a store by the name of its folder."""
    root = tmp_path_factory.mktemp("stores")
    made: dict[str, Made] = {"disk": lambda name: on_disk(root / name)}
    return made[request.param]


def on_disk(folder: Path) -> FileStore:
    return FileStore(fs.LocalFileSystem(), str(folder))


def written(store: Store, name: str, content: bytes) -> None:
    if isinstance(store, FileStore):  # which has folders
        FileStore(store.filesystem, store.path(name).rpartition("/")[0]).make()
    with store.open_output(name) as stream:
        stream.write(content)


def fresh(made: Made, number: Iterator[int] = itertools.count()) -> Store:  # noqa: B008 - one for all
    store = made(f"folder-{next(number)}")
    store.make()
    return store


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(changes, max_size=12))
def test_a_folder_holds_what_was_written_and_not_removed(made: Made, changes: list[tuple]):
    store, known = fresh(made), Folder()
    for operation, *arguments in changes:
        if operation == "write":
            written(store, *arguments)
            known.put(*arguments)
        else:
            getattr(store, operation)(*arguments)
            getattr(known, operation)(*arguments)
        assert store.listed("file") == known.listed("file")
        assert set(store.listed("folder")) >= set(known.listed("folder")), "a disk keeps empty folders"
        assert [store.has(name) for name in NAMES] == [known.has(name) for name in NAMES]
    for name in NAMES:
        if known.has(name):
            assert store.read(name) == known.read(name)
        else:
            with pytest.raises(FileNotFoundError):
                store.read(name)


def test_a_folder_that_is_missing_is_empty(made: Made):
    store = made("never made")
    assert (store.listed("file"), store.listed("folder"), store.has("a")) == ([], [], False)
    store.remove(["a"])
    store.remove_folder("deep")
    store.clear()


@pytest.mark.parametrize("size", [0, 1, 1 << 20, (11 << 20) + 3])
def test_a_file_of_any_size_is_whole_and_read_in_parts(made: Made, size: int):
    """The largest is written in more than one request where files are written in parts."""
    store, content = fresh(made), bytes(range(256)) * (size // 256 + 1)
    content = content[:size]
    with store.open_output("large") as stream:
        for at in range(0, size, 1 << 20):
            stream.write(content[at : at + (1 << 20)])
    assert store.read("large") == content
    with store.open_input("large") as stream:
        assert stream.size() == size
        for start, length in ((size // 2, 10), (0, 1), (max(size - 5, 0), 5)):
            stream.seek(start)
            assert stream.read_buffer(length).to_pybytes() == content[start : start + length]


def test_a_file_that_is_missing_cannot_be_opened(made: Made):
    with pytest.raises(FileNotFoundError), fresh(made).open_input("none") as stream:
        stream.read_buffer(1)
