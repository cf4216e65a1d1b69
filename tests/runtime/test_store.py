from __future__ import annotations

import pickle
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import SCHEMA, chunked, table, tables

from skypane.runtime.spark.store import DRAFT, ROW_GROUP, PartialRef, Store, attempt_name, tables_of

NESTED = pa.table({
    "list": pa.array([[1, None], None, []], pa.list_(pa.int32())),
    "record": pa.array([{"a": "x", "b": [1.5]}, None, {"a": None, "b": None}],
                       pa.struct([("a", pa.string()), ("b", pa.list_(pa.float64()))])),
    "pairs": pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int64())),
    "money": pa.array([Decimal("1.10"), None, Decimal("-2.00")], pa.decimal128(20, 2)),
    "local": pa.array([datetime(2024, 3, 10, 2, 30), None, None], pa.timestamp("us")),  # noqa: DTZ001 - without zone
    "nothing": pa.nulls(3),
    "raw": pa.array([b"\x00", None, b""], pa.binary()),
})  # fmt: skip


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store.at(str(tmp_path)).child("deep").child("er")
    made.make()
    return made


def test_a_relative_path_means_the_same_to_every_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert Store.at("out") == Store(str(tmp_path / "out"))


@pytest.mark.parametrize("uri", [False, True])
def test_a_path_and_a_uri_reach_the_same_files(tmp_path: Path, uri: bool):
    store = Store.at(tmp_path.as_uri() if uri else str(tmp_path)).child("s")
    store.make()
    store.write_json("a.json", [1])
    assert (tmp_path / "s" / "a.json").read_text() == "[1]"
    assert store.path("a.json") == str(tmp_path / "s" / "a.json")
    assert store.url("a.json") == (tmp_path / "s" / "a.json").as_uri()


def test_a_store_travels_without_its_connection(store: Store):
    store.write_json("a.json", 1)
    sent = pickle.loads(pickle.dumps(store))  # noqa: S301 - our own bytes
    assert sent == store
    assert "_fs" not in vars(sent)
    assert sent.read_json("a.json") == 1


def test_names_are_those_of_files_right_there(store: Store):
    assert store.child("not there").names() == []
    store.child("folder").make()
    for name in ("b", "a"):
        store.write_json(name, 0)
    assert store.names() == ["a", "b"]
    assert store.has("a")
    assert not store.has("c")
    store.remove(["a", "c"])
    assert store.names() == ["b"]


def test_a_document_is_replaced_whole_or_not_at_all(store: Store, monkeypatch: pytest.MonkeyPatch):
    """A kill between writing and moving leaves the old document, and a draft that is cleared away."""
    store.write_json("state.json", {"batch": 1})

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Store, "move", killed)
        with pytest.raises(KeyboardInterrupt):
            store.write_json("state.json", {"batch": 2})
    assert store.read_json("state.json") == {"batch": 1}
    assert [name.startswith(DRAFT) for name in store.names()] == [True, False]
    store.remove_drafts()
    assert store.names() == ["state.json"]
    store.write_json("state.json", {"batch": 2})
    assert store.read_json("state.json") == {"batch": 2}


def test_a_document_that_is_not_there_or_not_whole_is_told_apart(store: Store):
    with pytest.raises(FileNotFoundError):
        store.read_json("state.json")
    Path(store.path("state.json")).write_text('{"batch": ', encoding="ascii")
    with pytest.raises(ValueError, match="Expecting value"):
        store.read_json("state.json")


def test_a_file_is_moved_over_another(store: Store):
    store.write_json("new", "new")
    target = store.child("target")
    target.make()
    target.write_json("there", "old")
    store.move("new", target, "there")
    assert target.read_json("there") == "new"
    assert not store.has("new")


@given(st.lists(tables(clean=False), min_size=1, max_size=4))
def test_partials_come_back_one_by_one_in_any_order(tmp_path_factory: pytest.TempPathFactory, partials: list[pa.Table]):
    store = Store.at(str(tmp_path_factory.mktemp("partials")))
    refs = store.write_partials("p.arrow", partials)
    assert refs == [PartialRef("p.arrow", i, partial.num_rows) for i, partial in enumerate(partials)]
    read = store.reader()
    for ref, partial in reversed(list(zip(refs, partials, strict=True))):
        assert repr(read(ref).to_pylist()) == repr(partial.to_pylist())  # NaN equals itself as text
    assert [part.num_rows for part in tables_of(store, "p.arrow")] == [partial.num_rows for partial in partials]


@pytest.mark.parametrize("partial", [
    NESTED, NESTED.slice(1, 1), NESTED.slice(0, 0), NESTED.schema.empty_table(), chunked(NESTED, [1, 1]),
    SCHEMA.empty_table(), pa.Table.from_batches([], NESTED.schema),
])  # fmt: skip
def test_partials_of_any_type_and_none_at_all_come_back_as_they_were(store: Store, partial: pa.Table):
    (ref,) = store.write_partials("p.arrow", [partial])
    back = store.reader()(ref)
    assert back.schema == partial.schema
    assert back.to_pylist() == partial.to_pylist()
    assert [table.to_pylist() for table in tables_of(store, "p.arrow")] == [partial.to_pylist()]


def test_a_partial_outlives_its_file(store: Store):
    """The engine removes files while a window's answer may still be made of them."""
    (ref,) = store.write_partials("p.arrow", [table(range(1_000))])
    partial = store.reader()(ref)
    store.remove(["p.arrow"])
    assert partial.equals(table(range(1_000)))


def test_no_two_attempts_share_a_name_and_batches_sort():
    names = [attempt_name(batch, task) for batch in (9, 10) for task in (1, 1, 2)]
    assert len(set(names)) == len(names)
    assert sorted(names)[:3] == sorted(names[:3])


def test_parquet_gathers_small_tables_into_row_groups(store: Store):
    small = table([1, 2, 3])
    store.write_parquet("few.parquet", SCHEMA, [small, SCHEMA.empty_table(), small])
    assert store.read_parquet("few.parquet", SCHEMA).equals(pa.concat_tables([small, small]))
    assert pq.read_metadata(store.path("few.parquet")).num_row_groups == 1

    half = table(range(ROW_GROUP // 2 + 1))
    store.write_parquet("many.parquet", SCHEMA, [half] * 3)
    assert pq.read_metadata(store.path("many.parquet")).num_row_groups == 2


@pytest.mark.parametrize("rows", [NESTED, NESTED.slice(0, 0)])
def test_parquet_keeps_every_type(store: Store, rows: pa.Table):
    store.write_parquet("p.parquet", rows.schema, [rows])
    assert store.read_parquet("p.parquet", rows.schema).equals(rows)


def test_parquet_without_tables_has_its_schema(store: Store):
    store.write_parquet("p.parquet", SCHEMA, [])
    assert store.read_parquet("p.parquet", SCHEMA).equals(SCHEMA.empty_table())
