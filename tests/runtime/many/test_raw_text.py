"""The raw text of rows that each kind of input sends to the late sink: read as a task does it, without Spark."""

from __future__ import annotations

import gzip
import tempfile
from base64 import b64decode
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark import cloudpickle
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import DoubleType, LongType, StringType, StructField, StructType, TimestampType
from tests.runtime.many.schema_messages import avro, record
from tests.runtime.receiving import logs
from tests.servers import schema_registry as registries
from tests.stores.memory import in_memory

from skypane.locations import Location
from skypane.operators.entry.raw_text import unpacked
from skypane.runtime.growing_files import LONGEST
from skypane.runtime.spark.sources.many import line_numbers, schema_registry
from skypane.runtime.spark.sources.many.discovery import listed, to_text
from skypane.runtime.spark.sources.many.inputs_api import SENT
from skypane.runtime.spark.sources.many.source import ManySource
from skypane.runtime.stores.object_client import client_of
from skypane.types import ConfigError

Row = dict[str, Any]

N = StructType([StructField("n", LongType())])


def rows_of(*given: object, schema: StructType = N, most: int | None = None, raw: str = "malformed") -> list[Row]:
    """Return all rows of inputs with what the late sink would get, in batches of at most so many rows."""
    columns = StructType([*schema, StructField("input", StringType()), *SENT])
    options = {"inputs": to_text(listed(given)), "rawText": raw, "align": "false"}
    reader: Any = ManySource(options).streamReader(columns)
    found, start = list[Row](), reader.initialOffset()
    limit = ReadAllAvailable() if most is None else ReadMaxRows(most)
    while (end := reader.latestOffset(start, limit)) != start:
        for task in reader.partitions(start, end):
            worker: Any = cloudpickle.loads(cloudpickle.dumps(reader))
            found += [
                row for batch in worker.read(task) for row in unpacked(pa.Table.from_batches([batch])).to_pylist()
            ]
        start = end
    return found


def text_of(row: Row) -> bytes:
    return b64decode(row["raw_text"]) if row["raw_encoding"] == "base64" else row["raw_text"].encode()


def malformed(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row["raw_error"] is not None]


LINE = st.one_of(
    st.integers(0, 9).map(lambda n: b'{"n": %d}' % n),
    st.sampled_from([b"", b" ", b"null", b"[1]", b"no", b'{"n": "x"}', b'{"n": 1}{"n": 2}', b"\xff\xfe", b"a\0b", b'{"n":', b"\x1b[31m"]),
)  # fmt: skip


@pytest.mark.parametrize("form", ["json", "json.gz"])
@given(st.lists(LINE, max_size=12), st.sampled_from([b"\n", b"\r\n"]), st.none() | st.integers(1, 4), st.booleans())
def test_each_line_that_does_not_parse_comes_with_its_text_and_its_place(
    form: str, lines: list[bytes], end: bytes, most: int | None, whole: bool
):
    """By the definition: the line of that number, cut out of the file at that byte."""
    text = b"".join(line + end for line in lines)
    line_numbers._counted.clear()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"a.{form}")
        path.write_bytes(gzip.compress(text) if form == "json.gz" else text)
        rows = rows_of(str(path), most=most, raw="all" if whole else "malformed")
    wrong = malformed(rows)
    assert len(rows) == sum(line.strip() != b"" for line in lines)
    for row in wrong if not whole else rows:
        begin = row["raw_offset"]
        line = text[begin:].partition(b"\n")[0].removesuffix(b"\r")
        assert text_of(row) == line
        assert row["raw_file"] == str(path)
        if row["raw_error"] is not None:
            assert row["raw_line"] == text[:begin].count(b"\n") + 1
    assert {row["raw_offset"] for row in rows} == {
        sum(len(one) + len(end) for one in lines[:at]) for at, line in enumerate(lines) if line.strip()
    }


def test_the_line_number_is_counted_where_a_process_has_not_read_what_is_before(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(b'{"n": 1}\n' * 3 + b"no\n")
    (first,) = malformed(rows_of(str(path), most=3))
    line_numbers._counted.clear()
    with path.open("ab") as file:
        file.write(b'{"n": 2}\n' * 2 + b"nor this\n")
    found = malformed(rows_of(str(path), most=5))
    assert [first["raw_line"], *(row["raw_line"] for row in found)] == [4, 4, 7]


def test_a_csv_line_has_the_columns_that_its_file_names(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b'p,"a,b",n\n1.5,x,2\n1;5,y,z\n')
    (row,) = malformed(
        rows_of({"path": str(path), "header": True}, schema=StructType([*N, StructField("p", DoubleType())]))
    )
    assert (row["raw_text"], row["raw_format"], row["raw_line"]) == ("1;5,y,z", 'csv p,"a,b",n', 3)


def test_of_a_line_that_is_too_long_there_is_its_beginning_which_is_not_parsed_again(tmp_path):
    path = tmp_path / "a.csv"
    with path.open("wb") as file:
        file.write(b"1\n" + b"2" * (LONGEST + 1) + b"\nx\n")
    long, after = malformed(rows_of(str(path)))
    assert long["raw_text"].startswith("22")
    assert (long["raw_format"], long["raw_line"], after["raw_line"]) == (None, 2, 3)
    assert "is longer than" in long["raw_error"]


def test_what_a_damaged_member_has_cut_off_is_not_parsed_again(tmp_path):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"1\n" * 50_000 + b"123456\n")[:-12] + gzip.compress(b"7\n" * 20_000))
    wrong = malformed(rows_of(str(path)))
    assert [row["raw_format"] for row in wrong if "damaged" in row["raw_error"]] == [None]


def test_a_row_without_a_time_has_its_text_as_it_can_enter_no_window(tmp_path):
    schema = StructType([StructField("t", TimestampType()), *N])
    lines = [b'{"t": "2026-01-01T00:00:00Z", "n": null}', b'{"time": "2026-01-01T00:00:00Z", "n": 1}', b'{"n": 2}']
    (tmp_path / "a.json").write_bytes(b"\n".join([*lines, b""]))
    rows = rows_of(str(tmp_path / "a.json"), schema=schema)
    assert [row["raw_text"] for row in rows] == [None, *(line.decode() for line in lines[1:])]
    assert [(row["raw_format"], row["raw_error"]) for row in rows] == [(None, None), ("json", None), ("json", None)]


def test_a_row_has_its_file_if_the_name_of_its_input_is_another_one(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(b'{"n": 1}\n')
    (named,), (unnamed,) = rows_of({"path": str(path), "name": "a"}), rows_of(str(path))
    assert (named["input"], named["raw_file"], named["raw_offset"]) == ("a", str(path), 0)
    assert (unnamed["input"], unnamed["raw_file"], unnamed["raw_offset"]) == (str(path), None, 0)


def test_objects_are_named_by_each_of_their_rows():
    with in_memory():
        store = client_of(Location.of("s3://bucket"))
        store.put("in/a.json", b'{"n": 1}\nno\n')
        store.put("in/b.json.gz", gzip.compress(b'\n{"n": 2}\n\xff'))
        rows = rows_of({"objects": "s3://bucket/in/*.json*", "format": "json", "name": "in"})
    places = {(Path(row["raw_file"]).name, row["raw_offset"], row["raw_line"]) for row in rows}
    assert places == {("a.json", 0, None), ("a.json", 9, 2), ("b.json.gz", 1, None), ("b.json.gz", 10, 3)}
    assert sorted(text_of(row) for row in malformed(rows)) == [b"no", b"\xff"]


def test_received_lines_are_named_by_their_log_and_byte(tmp_path):
    logs.write(tmp_path / "log", b'{"n": 1}\n', b"none\n", b'{"n": 3}\n', segment_bytes=1)
    rows = rows_of({"segments": str(tmp_path / "log"), "format": "json"})
    assert sorted(row["raw_offset"] for row in rows) == [0, 9, 14]
    (row,) = malformed(rows)
    assert (row["raw_text"], row["raw_file"], row["raw_line"]) == ("none", str(tmp_path / "log"), None)


def test_a_row_of_parquet_that_does_not_fit_comes_as_it_was_read(tmp_path):
    pq.write_table(pa.table({"n": pa.array([1, 2**63], pa.uint64())}), tmp_path / "a.parquet")
    rows = rows_of({"parquet": str(tmp_path / "a.parquet")})
    assert sorted(row["raw_offset"] for row in rows) == [0, 1]
    (row,) = malformed(rows)
    assert (row["raw_text"], row["raw_format"], row["raw_offset"]) == ("{'n': 9223372036854775808}", None, 1)


def test_messages_have_their_topic_partition_and_offset(kafka):
    kafka.create("raw", 2)
    values = [b'{"n": 1}', b"no", None, b"\xff", b"", b'{"n": 5}\n']
    kafka.send("raw", values, 1)
    rows = rows_of({"kafka": kafka.address, "topic": "raw", "name": "named"}, raw="all")
    assert {(row["raw_topic"], row["raw_partition"], row["input"]) for row in rows} == {("raw", 1, "named[1]")}
    assert {row["raw_offset"]: text_of(row) for row in rows} == {
        at: value for at, value in enumerate(values) if value is not None
    }
    late = [row for row in rows_of({"kafka": kafka.address, "topic": "raw"}) if row["raw_error"] is None]
    places = [(row["raw_topic"], row["raw_partition"], row["raw_offset"], row["raw_text"]) for row in late]
    assert places == [("raw", 1, 0, None), ("raw", 1, 5, None)]


def test_a_message_that_is_a_record_comes_whole(kafka):
    with registries.running() as server:
        values = [*avro(server.url, record([("n", "string")]), {"n": "x"}), b"\x01no"]
        kafka.create("raw-avro")
        kafka.send("raw-avro", values)
        rows = rows_of({"kafka": kafka.address, "topic": "raw-avro", "format": "avro", "registry": server.url})
    schema_registry.cached_client.cache_clear()
    assert sorted(text_of(row) for row in malformed(rows)) == sorted(values)
    assert {row["raw_format"] for row in rows} == {None}


def test_other_rows_than_these_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="raw_text must be one of malformed, all, got 'none'"):
        rows_of(str(tmp_path / "a.csv"), raw="none")
