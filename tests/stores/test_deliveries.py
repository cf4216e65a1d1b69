"""A batch in a folder of an object store that two drivers deliver: all of its rows are there once, whatever they do."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import cast

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from tests.stores.memory import in_memory
from tests.stores.requests import before_each

from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.runtime.spark.sinks.directory import Directory, Format
from skypane.runtime.spark.sinks.folder_owner import OWNER, STAGE, QueryStart
from skypane.types import CheckpointError

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])
FORMATS: tuple[Format, ...] = ("parquet", "csv", "json")
SPARK = cast("SparkSession", None)


@pytest.fixture(autouse=True, scope="module")
def _memory() -> Iterator[None]:
    with in_memory():
        yield


def table(ids: list[int]) -> pa.Table:
    return pa.table({"id": ids, "name": [f"é{id_}" for id_ in ids]}, schema=SCHEMA)


def answers_of(parts: list[list[int]], out: Directory, driver: str) -> BatchRows:
    """Return rows in files of workers, one for each part, or in tables, if there are none or the format has no files."""
    tables = tuple(map(table, parts))
    count = sum(part.num_rows for part in tables)
    stage = out.stage(driver)
    if stage is None or not count or len(parts) == 1:
        return BatchRows(SCHEMA, count, tables=tables, driver=driver)
    names = tuple(f"{driver}-{index}.parquet" for index in range(len(tables)))
    for name, part in zip(names, tables, strict=True):
        stage.write_parquet(name, SCHEMA, [part])
    return BatchRows(SCHEMA, count, store=stage, files=names, driver=driver)


def ids_in(store: DocumentStore, format_: str) -> list[int]:
    found: list[int] = []
    for name in store.names():
        if name == OWNER:
            continue
        assert name.startswith("part-000000000005-")
        if format_ == "parquet":
            found += store.read_parquet(name, SCHEMA).column("id").to_pylist()
            continue
        lines = store.read(name).decode().splitlines()
        if format_ == "csv":
            assert lines.pop(0) == '"id","name"'
            found += [int(line.split(",")[0]) for line in lines]
        else:
            found += [int(line.split(":")[1].split(",")[0]) for line in lines]
    return sorted(found)


class Fenced:
    """Whether the first driver is fenced."""

    def __init__(self) -> None:
        self.since = False

    def check(self) -> None:
        if self.since:
            raise CheckpointError("taken over")


parts_of_batch = st.lists(st.lists(st.integers(0, 3), max_size=3), max_size=4)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(FORMATS), parts_of_batch, st.data())
def test_a_fenced_driver_adds_nothing_to_what_the_next_one_delivers(
    format_: Format, parts: list[list[int]], data: st.DataObject
):
    """The next driver delivers the rows in another division, between any two requests of the fenced one."""
    rows = [id_ for part in parts for id_ in part]
    cut = data.draw(st.integers(0, len(rows)))
    at = data.draw(st.integers(0, 12))
    other = data.draw(st.booleans())
    later = [*rows, 9] if other else rows  # with other numbers of its policy the next driver answers something else
    out = Directory(f"s3://bucket/{uuid.uuid4().hex}", format_, one_file=data.draw(st.booleans()))
    fenced, left = Fenced(), [at]

    def next_driver() -> None:
        fenced.since = True
        out.open(QueryStart("query", "driver-2", 5))
        out.write(SPARK, replace(answers_of([later[:cut], later[cut:]], out, "driver-2"), first=True), 5)

    def another(_: str) -> None:
        left[0] -= 1
        if left[0] == 0:
            next_driver()

    out.open(QueryStart("query", "driver-1", 5))
    answers = replace(answers_of(parts, out, "driver-1"), check=fenced.check, first=data.draw(st.booleans()))
    with before_each(another):
        try:
            out.write(SPARK, answers, 5)
        except (CheckpointError, FileNotFoundError):  # its files in the staging folder are gone
            assert fenced.since
    if not fenced.since:
        assert ids_in(out.store, format_) == sorted(rows)
        next_driver()
    assert ids_in(out.store, format_) == sorted(later)


@pytest.mark.parametrize("format_", FORMATS)
def test_a_batch_delivered_again_and_again_is_as_if_delivered_once(format_: Format):
    out = Directory(f"s3://bucket/again-{format_}", format_)
    for start in range(4):
        out.open(QueryStart("query", f"driver-{start}", 5))
        out.write(SPARK, replace(answers_of([[1, 2], [2]], out, f"driver-{start}"), first=True), 5)
        assert ids_in(out.store, format_) == [1, 2, 2]
    assert out.store.child(STAGE).folders() == []


def test_a_batch_without_rows_has_a_file_only_after_a_start():
    out = Directory("s3://bucket/nothing")
    out.open(QueryStart("query", "driver-1", 5))
    out.write(SPARK, BatchRows(SCHEMA, 0), 5)
    assert out.store.names() == [OWNER]
    out.write(SPARK, BatchRows(SCHEMA, 0, first=True), 5)
    assert out.store.names() == [OWNER, "part-000000000005-00000.parquet"]
    assert out.store.read_parquet("part-000000000005-00000.parquet", SCHEMA).num_rows == 0


def test_a_folder_of_another_query_is_refused():
    out = Directory("s3://bucket/taken")
    out.open(QueryStart("query", "driver-1", 5))
    with pytest.raises(CheckpointError, match="holds the output of another query"):
        out.open(QueryStart("other query", "driver-2", 5))
