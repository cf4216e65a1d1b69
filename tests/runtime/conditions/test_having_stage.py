"""The two stages around Spark's filter of files of answers, against a filter of the rows that were written."""

from __future__ import annotations

import json
from collections import Counter
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skypane as sp
from skypane.operators.stay_columns import expanded
from skypane.operators.window_query import WindowQuery
from skypane.runtime.spark import document_store
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine.having_stage import KeepStage, ReadStage, RowPlace, WrittenAnswers
from skypane.windows import Windows

WINDOWS = Windows(40, 10, 3)
SCHEMA = pa.schema({"time": pa.timestamp("us"), "key": pa.string(), "tags": pa.list_(pa.string())})
QUERY = WindowQuery(sp.Aggregate("key", n=sp.count(), tags=sp.collect_list("tags", order="time")), WINDOWS, "UTC")
OWN = QUERY.query.output_schema(SCHEMA)
PLACE = RowPlace("file", "row_")

Row = tuple[int, int, str | None, int]
"""The first and the last window of a row, its key and its count."""
rows = st.lists(
    st.tuples(st.integers(-3, 5), st.integers(0, 4), st.sampled_from(["a", "b", None]), st.integers(0, 6)).map(
        lambda row: (row[0], row[0] + row[1], row[2], row[3])
    ),
    max_size=40,
)


def own(row: Row) -> pa.Table:
    return pa.Table.from_pylist([{"key": row[2], "n": row[3], "tags": [["x"] * row[3]]}], schema=OWN)


def answers(some: list[Row], query: WindowQuery) -> pa.Table:
    """Return rows as answers of their first windows, or as stays from the first to the last."""
    schema = query.output_schema(SCHEMA)
    if query.stays:
        stamped = [query.stamp_stays(own(row), *(pa.array([window]).to_numpy() for window in row[:2])) for row in some]
    else:
        stamped = [query.stamp(row[0], own(row)) for row in some]
    return pa.concat_tables([schema.empty_table(), *stamped])


@pytest.mark.parametrize("stays", [False, True])
@given(st.lists(rows, min_size=1, max_size=3), st.integers(1, 5), st.randoms(use_true_random=False))
def test_a_file_keeps_the_rows_whose_places_come_back(
    tmp_path_factory: pytest.TempPathFactory, stays: bool, parts: list[list[Row]], group: int, chance: Random
):
    query = WindowQuery(QUERY.query, WINDOWS, "UTC", stays=stays)
    store, schema = DocumentStore.at(tmp_path_factory.mktemp("answers")), query.output_schema(SCHEMA)
    tables = [answers(part, query) for part in parts]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(document_store, "ROW_GROUP", group)
        for number, table in enumerate(tables):
            each = [table.slice(at, 1) for at in range(table.num_rows)]
            store.write_parquet(f"{number}.parquet", schema, each)
    files = WrittenAnswers(store, tuple(f"{number}.parquet" for number in range(len(parts))), schema)
    stage = ReadStage(files, ("key", "n"), PLACE)
    numbers = [pa.RecordBatch.from_pydict({"id": [number]}) for number in range(len(parts))]
    read = pa.Table.from_batches(stage(numbers), schema=stage.schema)
    assert read.select(["key", "n"]).to_pylist() == pa.concat_tables(tables).select(["key", "n"]).to_pylist()

    # what Spark gives back: the places of the rows that meet the condition, in batches of any size
    met = [(row["file"], row["row_"]) for row in read.to_pylist() if row["n"] % 3 == 1]
    cuts = sorted(chance.sample(range(len(met) + 1), min(2, len(met) + 1)))
    batches = [
        pa.RecordBatch.from_pydict({
            "file": pa.array([file for file, _ in some], pa.int64()),
            "row_": pa.array([row for _, row in some], pa.int64()),
        })
        for begin, end in zip([0, *cuts], [*cuts, len(met)], strict=True)
        if (some := met[begin:end])
    ]  # fmt: skip
    known = tuple(range(-4, 12))
    reports = [
        json.loads(text)
        for batch in KeepStage(files, WINDOWS, known, "7")(batches)
        for text in batch.column(0).to_pylist()
    ]
    kept = {report["file"]: store.read_parquet(report["name"], schema) for report in reports}
    for number, (part, table) in enumerate(zip(parts, tables, strict=True)):
        wanted = table.filter(pa.array([row[3] % 3 == 1 for row in part], pa.bool_()))
        found = kept.pop(number, schema.empty_table())
        assert found.equals(wanted), "the same rows of the same types, in their order"
        (report,) = [report for report in reports if report["file"] == number] or [
            {"rows": 0, "windows": [0] * len(known)}
        ]
        assert report["rows"] == wanted.num_rows
        starts = (expanded(wanted) if stays else wanted)["window_start"].cast(pa.int64()).to_pylist()
        counts = Counter((start - WINDOWS.offset) // WINDOWS.slide for start in starts)
        assert dict(zip(known, report["windows"], strict=True)) == {window: counts[window] for window in known}
    assert not kept


def test_the_columns_of_a_place_have_names_that_no_other_column_has():
    assert RowPlace.beside(pa.schema({"n": pa.int64()})) == RowPlace("file", "row")
    assert RowPlace.beside(pa.schema({"ROW": pa.int64(), "row_": pa.int64(), "File": pa.int64()})) == RowPlace(
        "file_", "row__"
    )
