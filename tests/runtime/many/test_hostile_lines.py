"""Lines of strangers: none ends the process that reads it, and none takes another one with it."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, date, datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.runtime import growing_files
from skypane.runtime.line_rows import parse, parse_all
from skypane.runtime.row_parser import Malformed, RowFormat

COLUMNS = pa.schema([("n", pa.int64()), ("s", pa.string())])
LAYOUTS = {"json": RowFormat("json", COLUMNS, ()), "csv": RowFormat("csv", COLUMNS, ("n", "s"))}
# Each is malformed alone, and would take a neighbour with it, be two rows, or end the process.
HOSTILE = {
    "json": [b"null", b" null ", b"null{}", b"{}null", b"[]", b"7", b'"x"', b'{"x":[', b"]}", b'{"x":"', b'"}', b"{", b"}",
             b'{"n":1}{"n":2}', b'{"n":1} null', b"{}}", b"\x00", b'{"n":"x"}', b'{"x":[{}', b"{}]}"],
    "csv": [b'1,"', b'"', b'1,"a""', b"1,a\r2,b", b"\r1,a", b"1", b"1,2,3", b"x,a", b'1,"a\r"', b"1,\xff"],
}  # fmt: skip
GOOD = {"json": [b'{"n": 7, "s": "}{"}', b'  {"n":7}\t', b'{"n":7}\r', b'{"n":7,"x":[{}]}', b'\xef\xbb\xbf{"n":7}'],
        "csv": [b"7,a", b"7,a\r", b'7,"a"', b"\xef\xbb\xbf7,a", b"\xef\xbb\xbf\xef\xbb\xbf7,a"]}  # fmt: skip
EMPTY = {"json": [b"", b"\r", b" \t"], "csv": [b"", b"\r", b"\xef\xbb\xbf"]}


@pytest.mark.parametrize("form", ["json", "csv"])
@given(data=st.data())
def test_a_line_is_a_row_or_malformed_or_empty_whatever_is_beside_it(form: str, data):
    groups = [GOOD[form], HOSTILE[form], EMPTY[form]]
    chosen = data.draw(st.lists(st.sampled_from(groups).flatmap(st.sampled_from), max_size=12))
    found = list(parse(LAYOUTS[form], b"".join(line + b"\n" for line in chosen), 1000))
    starts = [1000 + sum(map(len, chosen[:at])) + at for at in range(len(chosen))]
    malformed = {one.offset for one in found if isinstance(one, Malformed)}
    assert malformed == {start for start, line in zip(starts, chosen, strict=True) if line in HOSTILE[form]}
    rows = [row for one in found if isinstance(one, pa.Table) for row in one.to_pylist()]
    assert [row["n"] for row in rows] == [7] * sum(line in GOOD[form] for line in chosen)


@pytest.mark.parametrize("first", [b"null\n", b" null\n", b"null null\n", b"null"])
def test_no_line_ends_the_process_that_reads_it(first: bytes):
    script = (
        "import sys; import pyarrow as pa; from skypane.runtime.line_rows import parse\n"
        "from skypane.runtime.row_parser import RowFormat\n"
        "columns = pa.schema([('n', pa.int64())])\n"
        "for one in parse(RowFormat('json', columns, ()), sys.stdin.buffer.read(), 0): print(type(one).__name__)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], input=first, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b"Malformed\n")


def test_a_client_cannot_wrap_another_one_s_rows_into_its_own():
    lines = b'{"n":1}\n{"x":[\n{"n":2}\n]}\n{"n":3}\n'
    found = list(parse(LAYOUTS["json"], lines, 0))
    assert [row["n"] for one in found if isinstance(one, pa.Table) for row in one.to_pylist()] == [1, 2, 3]
    assert [one.line for one in found if isinstance(one, Malformed)] == ['{"x":[', "]}"]


@pytest.mark.parametrize(("line", "expected"), [
    (b'{"d":"2026-01-02"}', {"d": date(2026, 1, 2)}),
    (b'{"t":"2026-01-02T03:04:05.123456789Z"}', {"t": datetime(2026, 1, 2, 3, 4, 5, 123456, UTC)}),
    (b'{"t":"2026-01-02T03:04:05.1234567+01:00"}', {"t": datetime(2026, 1, 2, 2, 4, 5, 123456, UTC)}),
    (b'{"t":"2026-01-02T03:04:05.123456789"}', {"t": datetime(2026, 1, 2, 3, 4, 5, 123456, UTC)}),
    (b'{"t":"2026-01-02T03:04:05.123456789Z","d":"2026-01-02"}',
     {"t": datetime(2026, 1, 2, 3, 4, 5, 123456, UTC), "d": date(2026, 1, 2)}),
])  # fmt: skip
def test_dates_as_people_write_them_and_times_finer_than_ours_are_rows(line: bytes, expected: dict[str, object]):
    columns = pa.schema([("d", pa.date32()), ("t", pa.timestamp("us", "UTC"))])
    beside = b'{"t":"2026-01-02T03:04:05Z"}'
    found = list(parse(RowFormat("json", columns, ()), line + b"\n" + beside + b"\n", 0))
    assert not any(isinstance(one, Malformed) for one in found)
    rows = [row for one in found if isinstance(one, pa.Table) for row in one.to_pylist()]
    assert rows == [{"d": None, "t": None} | expected, {"d": None, "t": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)}]


def test_lines_of_a_stranger_move_no_terminal():
    (found_line,) = parse(LAYOUTS["json"], b"\x1b[2Jgone \xe2\x80\xaetxt\n", 0)
    assert isinstance(found_line, Malformed)
    assert found_line.line == r"\x1b[2Jgone \u202etxt"


@pytest.mark.parametrize("length", [90, 100, 101, 5_000])
def test_a_line_that_is_too_long_is_reported_and_not_read_whole(tmp_path, monkeypatch, length: int):
    for name, size in (("CHUNK", 60), ("LONGEST", 100), ("BEGINNING", 10), ("_BLOCK", 16)):
        monkeypatch.setattr(growing_files, name, size)
    path = tmp_path / "a"
    path.write_bytes(b'{"n":7}\n{"s":"' + b"x" * (length - 9) + b'"}\n{"n":7}\n')
    blocks = growing_files.GrowingFile(str(path)).blocks(0, length + 16)
    found = list(parse_all(LAYOUTS["json"], blocks, 1000))
    found_line = [(one.offset, one.line) for one in found if isinstance(one, Malformed)]
    assert found_line == ([(1008, '{"s":"xxxx')] if length > 100 else [])
    rows = [row["n"] for one in found if isinstance(one, pa.Table) for row in one.to_pylist()]
    assert rows == ([7, 7] if length > 100 else [7, None, 7])
