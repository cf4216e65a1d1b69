from __future__ import annotations

import json
import os
import pickle
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import NESTED, SCHEMA, flipped, table

from skypane.runtime.spark.document_store import DRAFT, ROW_GROUP, DocumentStore


@pytest.fixture
def store(tmp_path: Path) -> DocumentStore:
    made = DocumentStore.at(str(tmp_path)).child("deep").child("er")
    made.make()
    return made


def test_a_relative_path_means_the_same_to_every_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert DocumentStore.at("out") == DocumentStore(str(tmp_path / "out"))


@pytest.mark.parametrize("uri", [False, True])
def test_a_path_and_a_uri_reach_the_same_files(tmp_path: Path, uri: bool):
    store = DocumentStore.at(tmp_path.as_uri() if uri else str(tmp_path)).child("s")
    store.make()
    store.write_json("a.json", [1])
    assert json.loads((tmp_path / "s" / "a.json").read_text())["document"] == [1]
    assert store.path("a.json") == str(tmp_path / "s" / "a.json")
    assert store.url("a.json") == (tmp_path / "s" / "a.json").as_uri()


def test_a_store_travels_without_its_connection(store: DocumentStore):
    store.write_json("a.json", 1)
    sent = pickle.loads(pickle.dumps(store))  # noqa: S301 - our own bytes
    assert sent == store
    assert "_fs" not in vars(sent)
    assert sent.read_json("a.json") == 1


def test_names_are_those_of_files_right_there(store: DocumentStore):
    assert store.child("not there").names() == []
    store.child("folder").make()
    for name in ("b", "a"):
        store.write_json(name, 0)
    assert store.names() == ["a", "b"]
    assert store.has("a")
    assert not store.has("c")
    store.remove(["a", "c"])
    assert store.names() == ["b"]


def test_the_root_of_a_disk_is_a_folder_as_any_other(tmp_path: Path):
    root = DocumentStore.at("/")
    assert root.exists
    assert tmp_path.resolve().parts[1] in root.folders()
    assert root.path("a") == root.child("a").path("") == "/a"
    root.sync("")


def test_a_document_is_replaced_whole_or_not_at_all(store: DocumentStore, monkeypatch: pytest.MonkeyPatch):
    """A kill between writing and moving leaves the old document, and a draft that is cleared away."""
    store.write_json("state.json", {"batch": 1})

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(DocumentStore, "move", killed)
        with pytest.raises(KeyboardInterrupt):
            store.write_json("state.json", {"batch": 2})
    assert store.read_json("state.json") == {"batch": 1}
    assert [name.startswith(DRAFT) for name in store.names()] == [True, False]
    store.write_json("state.json", {"batch": 2})
    assert store.read_json("state.json") == {"batch": 2}


def test_a_document_that_is_not_there_or_not_whole_is_distinguished(store: DocumentStore):
    with pytest.raises(FileNotFoundError):
        store.read_json("state.json")
    store.write_json("state.json", {"batch": 1})
    file = Path(store.path("state.json"))
    file.write_bytes(file.read_bytes()[:20])
    with pytest.raises(ValueError, match="20 bytes that are not one document"):
        store.read_json("state.json")


@given(st.data())
def test_no_bit_of_a_document_can_flip_unseen(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject):
    store = DocumentStore.at(str(tmp_path_factory.mktemp("flipped")))
    store.write_json("state.json", {"batch": 1, "name": "é", "share": 0.1})
    file = Path(store.path("state.json"))
    whole = file.read_bytes()
    file.write_bytes(flipped(whole, data.draw(st.integers(0, 8 * len(whole) - 1))))
    with pytest.raises(ValueError, match=r"checksum|not one document"):
        store.read_json("state.json")


def test_folders_come_and_go_with_what_is_in_them(store: DocumentStore):
    first = store.child("first")
    first.child("inner").make()
    first.write_json("state.json", 1)
    assert store.folders() == ["first"]
    first.clear()
    assert (first.exists, first.names(), first.folders()) == (True, [], [])
    store.remove_folder("first")
    store.remove_folder("first")
    first.clear()
    assert not first.exists


def test_documents_and_what_is_requested_reach_the_disk(store: DocumentStore, monkeypatch: pytest.MonkeyPatch):
    synced: list[str] = []
    fsync = os.fsync

    def noted(handle: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{handle}").readlink()))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", noted)
    store.write_json("state.json", 1)
    assert [Path(path).name.split(".")[:2] for path in synced[:1]] == [["", "draft-state"]]
    assert synced[1:] == [store.path("")], "the name is there after a power cut too"
    store.sync("state.json")
    assert synced[2:] == [store.path("state.json")]


def test_a_file_is_moved_over_another(store: DocumentStore):
    store.write_json("new", "new")
    target = store.child("target")
    target.make()
    target.write_json("there", "old")
    store.move("new", target, "there")
    assert target.read_json("there") == "new"
    assert not store.has("new")


def test_parquet_gathers_small_tables_into_row_groups(store: DocumentStore):
    small = table([1, 2, 3])
    store.write_parquet("few.parquet", SCHEMA, [small, SCHEMA.empty_table(), small])
    assert store.read_parquet("few.parquet", SCHEMA).equals(pa.concat_tables([small, small]))
    assert pq.read_metadata(store.path("few.parquet")).num_row_groups == 1

    half = table(range(ROW_GROUP // 2 + 1))
    store.write_parquet("many.parquet", SCHEMA, [half] * 3)
    assert pq.read_metadata(store.path("many.parquet")).num_row_groups == 2


@pytest.mark.parametrize("rows", [NESTED, NESTED.slice(0, 0)])
def test_parquet_keeps_every_type(store: DocumentStore, rows: pa.Table):
    store.write_parquet("p.parquet", rows.schema, [rows])
    assert store.read_parquet("p.parquet", rows.schema).equals(rows)


def test_parquet_without_tables_has_its_schema(store: DocumentStore):
    store.write_parquet("p.parquet", SCHEMA, [])
    assert store.read_parquet("p.parquet", SCHEMA).equals(SCHEMA.empty_table())
