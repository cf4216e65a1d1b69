from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.runtime.growing_files import GrowingFile
from skypane.runtime.line_rows import header, parse, parse_each
from skypane.runtime.row_parser import Malformed, RowFormat

COLUMNS = pa.schema([("t", pa.timestamp("us", "UTC")), ("p", pa.float64()), ("n", pa.string())])
JSON = RowFormat("json", COLUMNS, ())
CSV = RowFormat("csv", COLUMNS, ("t", "p", "n"))
GOOD = {"json": b'{"t": "2026-01-01T00:00:00Z", "p": 1.5, "n": "a,b"}\n', "csv": b'2026-01-01T00:00:00Z,1.5,"a,b"\n'}
BAD = {
    "json": [b'{"p": "x"}\n', b"no json\n", b'{"p": 1\n'],
    "csv": [b"1,2\n", b"2026,b,c\n", b"2026-01-01T00:00:00Z,1,\xff\n"],
}


@pytest.mark.parametrize("layout", [JSON, CSV], ids=["json", "csv"])
@given(bad=st.lists(st.sampled_from([None, 0, 1, 2]), max_size=12), offset=st.integers(0, 10**9))
def test_lines_that_do_not_parse_are_malformed_and_the_others_are_rows(layout: RowFormat, bad, offset: int):
    lines = [GOOD[layout.format] if kind is None else BAD[layout.format][kind] for kind in bad]
    found = list(parse(layout, b"".join(lines), offset))
    starts = [offset + sum(map(len, lines[:at])) for at in range(len(lines))]
    malformed = sorted(one.offset for one in found if isinstance(one, Malformed))
    assert malformed == [start for start, kind in zip(starts, bad, strict=True) if kind is not None]
    tables = [one for one in found if not isinstance(one, Malformed)]
    assert sum(map(len, tables)) == bad.count(None)
    assert all(table.schema == COLUMNS and set(table["n"].to_pylist()) == {"a,b"} for table in tables)


def test_columns_are_found_by_the_names_of_the_first_line_and_missing_ones_are_null():
    written = header(b'n,"p"\n')
    (table,) = parse(RowFormat("csv", COLUMNS, written), b"x,2\n", 0)
    assert isinstance(table, pa.Table)
    assert table.to_pylist() == [{"t": None, "p": 2.0, "n": "x"}]


@given(lines=st.lists(st.binary(max_size=6).map(lambda line: line.replace(b"\n", b"")), max_size=8), rest=st.binary(max_size=3),
       skip=st.integers(0, 8), count=st.integers(0, 9))  # fmt: skip
def test_whole_lines_are_counted_and_an_unfinished_one_is_left(tmp_path_factory, lines, rest, skip: int, count: int):
    path = Path(tmp_path_factory.getbasetemp()) / "growing"
    rest = rest.replace(b"\n", b"")
    path.write_bytes(b"".join(line + b"\n" for line in lines) + rest)
    lengths = [len(line) + 1 for line in lines]
    start = sum(lengths[:skip])
    taken = lengths[skip : skip + count]
    file = GrowingFile(str(path))
    assert file.after(start, count) == (start + sum(taken), len(taken))
    size = sum(lengths) + len(rest)
    assert file.after(start, count, size) == file.after(start, count)
    assert file.complete(start, size) == sum(lengths)
    assert file.read(start, start + sum(taken)) == b"".join(line + b"\n" for line in lines[skip : skip + count])


@pytest.mark.parametrize("layout", [JSON, CSV], ids=["json", "csv"])
@given(kinds=st.lists(st.sampled_from([None, 0, 1, 2, ""]), max_size=12))
def test_each_line_has_its_row_its_error_or_neither(layout: RowFormat, kinds):
    texts = [
        GOOD[layout.format] if kind is None else b"\n" if kind == "" else BAD[layout.format][kind] for kind in kinds
    ]
    if not texts:
        return
    found = parse_each(layout, b"".join(texts))
    assert found.lengths.tolist() == [len(text) for text in texts]
    assert found.rows.schema == COLUMNS
    assert found.rows["n"].to_pylist() == ["a,b" if kind is None else None for kind in kinds]
    assert {at for at, error in found.errors.items() if not error} == {
        at for at, kind in enumerate(kinds) if kind == ""
    }
    assert {at for at, error in found.errors.items() if error} == {
        at for at, kind in enumerate(kinds) if kind in (0, 1, 2) and kind is not None
    }
