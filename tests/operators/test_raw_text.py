"""The raw text of rows on its way to the late sink: what is sent comes out, and what others send ends nothing."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from skypane.operators.entry.raw_text import (
    ENCODING,
    KEPT,
    OFFSET,
    RAW,
    TEXT,
    all_packed,
    own,
    own_columns,
    packed,
    repacked,
    unpacked,
)

ABOUT = st.fixed_dictionaries(
    {},
    optional={
        "raw_format": st.sampled_from(["json", "csv a,b"]),
        "raw_error": st.text(),
        "raw_topic": st.text(),
        "raw_partition": st.integers(0, 2**31 - 1),
        "raw_file": st.text(),
        "raw_line": st.integers(1, 2**60),
    },
)


def sent(values: list[str | None], offsets: list[int | None] | None = None) -> pa.Table:
    columns: dict[str, Any] = {"n": pa.nulls(len(values), pa.int64())}
    columns[OFFSET] = pa.array(offsets or [None] * len(values), pa.int64())
    return pa.table(columns | {RAW: pa.array(values, pa.string())})


def bytes_of(row: dict[str, Any]) -> bytes | None:
    text: str | None = row[TEXT]
    if text is None:
        return None
    return b64decode(text) if row[ENCODING] == "base64" else text.encode()


@given(st.none() | st.binary(), ABOUT, st.none() | st.integers(0, 2**60))
@example(b"a\nb\r\n", {}, 7)
@example(b"nul\0", {}, None)
def test_a_text_and_its_place_come_out_as_they_were(text: bytes | None, about: dict[str, Any], at: int | None):
    (row,) = unpacked(sent([packed(text, about)], [at])).to_pylist()
    assert bytes_of(row) == text
    assert row["raw_offset"] == at
    assert {name: row[name] for name in about} == about
    if text is not None:
        assert (row[ENCODING] == "utf-8") == (b"\0" not in text and text.decode(errors="replace").encode() == text)


@given(st.lists(st.binary(max_size=20).map(lambda line: line.replace(b"\n", b"")), max_size=5), ABOUT)
def test_lines_are_packed_together_as_they_are_one_by_one(lines: list[bytes], about: dict[str, Any]):
    lines = [line.removesuffix(b"\r") for line in lines]
    for end in (b"\n", b"\r\n"):
        together = all_packed(pa.array([line + end for line in lines], pa.large_binary()), about).to_pylist()
        assert unpacked(sent(together)) == unpacked(sent([packed(line, about) for line in lines]))


@given(st.text() | st.text(alphabet='\x1e{}":,\nraw_line1').map(lambda text: f"\x1e{text}"))
@example('\x1e{"raw_line": "x"}\ntext')
@example('\x1e{"raw_partition": 99999999999}\ntext')
@example("\x1e[1]\n")
@example("\x1e" + "[" * 100_000)
def test_a_text_of_others_is_a_text_whatever_it_looks_like(text: str):
    """Only one with the parts that ours may have is taken for one of ours."""
    (row,) = unpacked(sent([text])).to_pylist()
    assert row[TEXT] in (text, text.partition("\n")[2], None)


@given(st.lists(st.tuples(st.none() | st.binary(), ABOUT, st.none() | st.integers(0, 9)), max_size=4))
def test_rows_that_come_a_second_time_keep_their_text(given_: list[tuple[bytes | None, dict[str, Any], int | None]]):
    rows = unpacked(sent([packed(text, about) for text, about, _ in given_], [at for *_, at in given_]))
    again = repacked(rows)
    assert again.column_names == ["n", OFFSET, RAW]
    assert unpacked(again) == rows


def test_a_secret_of_an_address_is_in_no_column():
    secret = {"raw_file": "s3://key:hunter2@bucket/in/a.json", "raw_error": "https://a/b?sig=hunter2 is gone"}
    assert "hunter2" not in str(unpacked(sent([packed(None, secret)])).to_pylist())


def test_rows_without_raw_text_and_columns_of_users_stay_as_they_are():
    rows = pa.table({"_skypane_offset": [1], "_skypane_raw": [b"bytes"]})
    assert unpacked(rows) is rows
    assert own(rows) is rows
    assert own_columns(rows.schema) == rows.schema
    assert own_columns(sent([None]).schema).names == ["n"]
    assert unpacked(sent([None])).column_names == ["n", *KEPT.names]
