"""Lines come once each, with their numbers, however a file is cut into blocks."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.datasets import SENSORSCOPE, line_reader
from skypane.datasets.rate_traces import RATES, counts

HERE = Path("trace.txt")

a_line = st.one_of(
    st.tuples(st.integers(0, 50), st.integers(0, 9)).map(lambda p: f"{p[0]} {p[1]}".encode()),
    st.sampled_from(
        [b"4 inf", b"4 1e400", b"", b"  ", b"\r", b"1", b"1 2 3", b"x 1", b"1 x", b"\xff\xfe 1", b"1 0x10"]
    ),
)


def as_defined(content):
    """The definition: which lines are rows, and which are rejected."""
    rows, rejected = [], []
    for number, line in enumerate(content.split(b"\n"), start=1):
        parts = line.decode("utf-8", "replace").split()
        if not parts:
            continue
        if len(parts) == 2 and all(part.isascii() and part.isdigit() for part in parts):
            rows.append((int(parts[0]), int(parts[1])))
        else:
            rejected.append(number)
    return rows, rejected


@given(st.lists(a_line, max_size=30), st.integers(1, 40), st.booleans(), st.booleans())
def test_blocks_do_not_show(tmp_path_factory, found, block, mark, end):
    content = (b"\xef\xbb\xbf" if mark else b"") + b"\n".join(found) + (b"\n" if end else b"")
    path = tmp_path_factory.mktemp("lines") / "trace.txt"
    path.write_bytes(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_reader, "BLOCK", block)
        parts = list(line_reader.read(RATES, [path]))
    rows = [(row["time"].timestamp(), row["count"]) for part in parts for row in part.table.to_pylist()]
    rejected = [line for part in parts for line in part.rejected["line"].to_pylist()]
    assert (rows, rejected) == as_defined(content.removeprefix(b"\xef\xbb\xbf"))


def test_a_line_has_the_first_reason_found():
    reading = line_reader.parse(RATES, [b"x y"], HERE)
    assert reading.reasons == {"second is not a whole number": 1}


def test_infinities_are_not_readings():
    reading = line_reader.parse(
        SENSORSCOPE,
        [b"1 2007 8 27 17 43 10 1188229390 " + b"1 " * 10 + last for last in (b"1e400", b"inf", b"1")],
        HERE,
    )
    assert reading.table.num_rows == 1
    assert reading.reasons == {"energy_source is not a number": 2}


def test_counts_keep_their_second():
    reading = line_reader.parse(RATES, [b"5 1", b"7 2", b"7 3"], HERE)
    assert counts(reading.table).tolist() == [1, 0, 5]
