"""The laws of a store, which its interface lists: the same tests for every implementation."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import fs
from tests.servers import s3
from tests.servers.s3 import BUCKET
from tests.stores.folders import Folder
from tests.stores.memory import in_memory

from skypane.locations import Location
from skypane.runtime.stores.file_store import FileStore
from skypane.runtime.stores.object_store import ObjectStore
from skypane.runtime.stores.store import ConflictError, Store

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


@pytest.fixture(scope="module", params=["disk", "memory", "s3"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    """Make a store by the name of its folder."""
    if request.param == "disk":
        root = tmp_path_factory.mktemp("stores")
        yield lambda name: FileStore(fs.LocalFileSystem(), str(root / name))
        return
    with in_memory() if request.param == "memory" else served():
        yield lambda name: ObjectStore(Location.of(f"s3://{BUCKET}/a folder/{name}"))


@pytest.fixture(scope="module", params=["memory", "s3"])
def made_objects(request: pytest.FixtureRequest) -> Iterator[Callable[[str], ObjectStore]]:
    """Make a store with conditional writes."""
    with in_memory() if request.param == "memory" else served():
        yield lambda name: ObjectStore(Location.of(f"s3://{BUCKET}/{name}"))


@contextmanager
def served() -> Iterator[None]:
    with s3.running() as port, s3.connected(port):
        yield


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
def test_a_folder_holds_what_was_written_and_not_removed(made: Made, changes: list[tuple[Any, ...]]):
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


@pytest.mark.parametrize("size", [0, 1, 20])
@pytest.mark.parametrize("length", [1, 7, 10, 20, 21])
def test_a_file_is_read_to_its_end_without_a_request_for_its_size(made: Made, size: int, length: int):
    store, content = fresh(made), bytes(range(size))
    written(store, "a", content)
    with store.open_input("a") as stream:
        parts = [stream.read(length) for _ in range(size // length + 2)]
        assert b"".join(parts) == content
        assert all(len(part) == length for part in parts[: size // length])
        stream.seek(size + 5)
        assert stream.read(1) == b""


def test_a_file_that_is_missing_cannot_be_opened(made: Made):
    with pytest.raises(FileNotFoundError), fresh(made).open_input("none") as stream:
        stream.read_buffer(1)


conditional = st.one_of(
    st.tuples(st.just("create"), names, contents),
    st.tuples(st.just("replace"), names, contents, st.booleans()),
    st.tuples(st.just("put"), names, contents),
    st.tuples(st.just("remove"), st.lists(names, max_size=3)),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(conditional, max_size=12))
def test_conditional_writes_succeed_exactly_if_nobody_was_faster(made_objects: Made, changes: list[tuple[Any, ...]]):
    store, known = fresh(made_objects), Folder()
    assert isinstance(store, ObjectStore)
    versions: dict[str, list[tuple[dict[str, str], bytes]]] = {name: [({"e_tag": '"none"'}, b"?")] for name in NAMES}
    for operation, *arguments in changes:
        if operation == "remove":
            store.remove(*arguments)
            known.remove(*arguments)
            continue
        name, content, *stale = arguments
        stamp, last = versions[name][0 if any(stale) else -1]
        replaced = (stamp,) if operation == "replace" else ()
        by_definition = (last,) if operation == "replace" else ()
        try:
            written = getattr(store, operation)(name, content, *replaced)
        except ConflictError:
            with pytest.raises(ConflictError):
                getattr(known, operation)(name, content, *by_definition)
        else:
            getattr(known, operation)(name, content, *by_definition)
            versions[name].append((written, content))
            assert store.stamp(name) == written
    assert {name: store.read(name) for name in NAMES if store.has(name)} == known.files


@pytest.mark.parametrize("replaces", [False, True])
def test_of_writers_at_the_same_time_one_succeeds(made_objects: Made, replaces: bool):
    store = fresh(made_objects)
    assert isinstance(store, ObjectStore)
    known = store.create("a", b"before") if replaces else None
    name = "a" if replaces else "b"
    won: list[int] = []
    start = threading.Barrier(8)

    def write(number: int) -> None:
        start.wait()
        try:
            store.replace(name, b"%d" % number, known) if known else store.create(name, b"%d" % number)
            won.append(number)
        except ConflictError:
            pass

    writers = [threading.Thread(target=write, args=[number]) for number in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [b"%d" % number for number in won] == [store.read(name)]


def test_a_copy_never_replaces(made_objects: Made):
    store = fresh(made_objects)
    assert isinstance(store, ObjectStore)
    for name in ("a", "b"):
        store.put(name, name.encode())
    store.copy("a", store, "deep/c é")
    with pytest.raises(ConflictError):
        store.copy("b", store, "deep/c é")
    assert store.read("deep/c é") == store.read("a") == b"a"
