"""Finished parquet files as inputs: rows are places; with real files, without Spark."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.runtime.many import read_batches
from tests.runtime.many.read_batches import NOTHING, batches, parts_of

from skypane.runtime.columns_to_read import set_as_spark
from skypane.runtime.row_parser import Malformed
from skypane.runtime.spark.sources.many import growing_inputs, parquet
from skypane.runtime.spark.sources.many.growing_inputs import FileInput
from skypane.runtime.spark.sources.many.input_kind import InputExtent, OffsetRange
from skypane.runtime.spark.sources.many.lacking_columns import LackingColumns
from skypane.runtime.spark.sources.many.offsets import Offsets
from skypane.runtime.spark.sources.many.planning import Planner
from skypane.types import CheckpointError

COLUMNS = pa.schema([("n", pa.int64()), ("p", pa.float64())])


def write(path: Path, count: int, group: int = 7) -> None:
    pq.write_table(pa.table({"other": ["x"] * count, "n": list(range(count))}), path, row_group_size=group)


def planner(folder: Path) -> Planner:
    return read_batches.planner(f"{folder}/*.parquet")


def rows(plan: Planner, start: Offsets, end: Offsets) -> list[tuple[str, int]]:
    found = []
    for part, table in parts_of(plan, start, end, COLUMNS):
        assert isinstance(table, pa.Table)
        assert table.schema == COLUMNS
        assert table["p"].null_count == len(table)
        found += [(Path(part.input.name).stem, n) for n in table["n"].to_pylist()]
    return found


@given(counts=st.lists(st.integers(0, 40), min_size=1, max_size=3), group=st.integers(1, 20), budget=st.integers(1, 30))
def test_each_row_of_each_file_comes_once(tmp_path_factory, counts, group: int, budget: int):
    folder = tmp_path_factory.mktemp("files")
    for at, count in enumerate(counts):
        write(folder / f"f{at}.parquet", count, group)
    plan, found = planner(folder), list[tuple[str, int]]()
    for start, end in batches(plan, budget):
        part = rows(plan, start, end)
        assert 0 < len(part) <= budget
        found += part
    assert sorted(found) == [(f"f{at}", n) for at, count in enumerate(counts) for n in range(count)]


def test_a_file_that_is_being_written_is_not_there_until_it_is_finished(tmp_path):
    write(tmp_path / "whole", 5)
    content = (tmp_path / "whole").read_bytes()
    plan = planner(tmp_path)
    for written in (0, 3, len(content) - 1):
        (tmp_path / "a.parquet").write_bytes(content[:written])
        assert plan.latest(NOTHING, 10) == NOTHING
    (tmp_path / "a.parquet").write_bytes(content)
    assert plan.latest(NOTHING, 10).at == {f"{tmp_path}/a.parquet": 5}


def test_a_row_that_does_not_fit_the_schema_is_reported_and_the_others_are_rows(tmp_path):
    pq.write_table(pa.table({"n": [1, 2, 3], "p": [1, 2**60 + 1, 3]}), tmp_path / "a.parquet")
    plan = planner(tmp_path)
    (task,) = plan.assigned(NOTHING, plan.latest(NOTHING, None))
    found = [one for _, one in parquet.read(task, COLUMNS)]
    bad = [one for one in found if isinstance(one, Malformed)]
    assert [(one.offset, one.line) for one in bad] == [(1, "{'n': 2, 'p': 1152921504606846977}")]
    assert "column 'p': Integer value 1152921504606846977" in bad[0].error
    assert [row for one in found if isinstance(one, pa.Table) for row in one.to_pylist()] == [
        {"n": 1, "p": 1.0}, {"n": 3, "p": 3.0}]  # fmt: skip


def read_of(folder: Path, rows: pa.Table, columns: pa.Schema) -> list[Any]:
    pq.write_table(rows, folder / "a.parquet")
    given = parquet.of({"parquet": str(folder / "a.parquet")}, "input")
    return [one for _, one in parquet.read([OffsetRange(given, 0, len(rows))], columns)]


@pytest.mark.parametrize("case_sensitive", [False, True])
def test_a_column_is_found_by_its_name_as_spark_compares_names(tmp_path: Path, case_sensitive: bool):
    columns = set_as_spark(pa.schema([("v", pa.int64())]), "UTC", case_sensitive=case_sensitive)
    (lone,) = read_of(tmp_path, pa.table({"V": [1]}), columns)
    assert lone.to_pylist() == [{"v": None if case_sensitive else 1}]
    (both,) = read_of(tmp_path, pa.table({"V": [1], "v": [2]}), columns)
    if case_sensitive:
        assert both.to_pylist() == [{"v": 2}]
    else:
        assert both.error == "column 'v' is there twice, as 'V' and as 'v'"


def test_the_log_names_columns_that_no_file_has_once(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    columns = set_as_spark(pa.schema([("ts", pa.int64()), ("price", pa.int64())]), "UTC", case_sensitive=False)
    lacking = LackingColumns(columns)
    for number, names in enumerate((["TS", "prise"], ["ts"])):
        path = tmp_path / f"{number}.parquet"
        pq.write_table(pa.table({name: [1] for name in names}), path)
        given = parquet.of({"parquet": str(path)}, "input")
        lacking.look({given.name: InputExtent(given, 0, 1, "")})
    (told,) = caplog.messages
    assert told.endswith("null in every row: 'price': did you mean 'prise'?")
    path.with_suffix(".csv").write_text(" Price \n1\n")
    LackingColumns(pa.schema([("price", pa.int64())])).look(
        {"a": InputExtent(FileInput(path=str(path.with_suffix(".csv")), header=True), 0, 1, "")}
    )
    assert len(caplog.messages) == 1


def test_the_log_names_a_column_that_no_compressed_file_has(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    lacking = LackingColumns(pa.schema([("ts", pa.int64()), ("price", pa.int64())]))
    path = tmp_path / "a.csv.gz"
    for text in (b"", b"ts, prise\n1,2\n"):
        path.write_bytes(gzip.compress(text))
        lacking.look({one.input.name: one for one in growing_inputs.look([FileInput(path=str(path), header=True)], {})})
    (named,) = caplog.messages
    assert named.endswith("null in every row: 'price': did you mean 'prise'?")


def test_a_file_that_was_replaced_or_has_gone_is_an_error(tmp_path):
    write(tmp_path / "a.parquet", 5)
    plan = planner(tmp_path)
    end = plan.latest(NOTHING, None)
    (task,) = plan.assigned(NOTHING, end)
    write(tmp_path / "a.parquet", 3)
    with pytest.raises(CheckpointError, match=r"a\.parquet has 3 rows, but 5 were read: it was cut or replaced"):
        planner(tmp_path).latest(end, None)
    with pytest.raises(CheckpointError, match=r"cannot be read up to row 5, which a started batch needs"):
        list(parquet.read(task, COLUMNS))
    (tmp_path / "a.parquet").unlink()
    with pytest.raises(CheckpointError, match=r"cannot be read up to row 5"):
        list(parquet.read(task, COLUMNS))


def test_a_file_whose_column_has_no_readable_name_is_not_there_and_others_are_read(tmp_path):
    for name in ("good", "bad"):
        pq.write_table(pa.table({"abcd": [1]}), tmp_path / f"{name}.parquet", store_schema=False)
    bad = tmp_path / "bad.parquet"
    bad.write_bytes(bad.read_bytes().replace(b"abcd", b"abc\xf3"))
    assert planner(tmp_path).latest(NOTHING, None).at == {f"{tmp_path}/good.parquet": 1}
