"""Values as texts of JSON and CSV: what the sinks write is read back as it was, and texts of others as they say."""

from __future__ import annotations

import io
import math
from base64 import b64encode
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.runtime.columns_to_read import set_as_spark
from skypane.runtime.json_rows import table_of, values_of
from skypane.runtime.line_rows import parse
from skypane.runtime.local_times import times_of, zone_of_session
from skypane.runtime.row_parser import Malformed, RowFormat, check_columns, parsed
from skypane.runtime.spark.sinks.text_format import write_csv, write_json
from skypane.types import ConfigError

INSTANT = pa.timestamp("us", "UTC")
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=5) | st.sampled_from(
    ["", "NaN", "null", '"', "\\", " a ", "NA"]
)
_ONE_LINE = _TEXT.filter(lambda text: not {"\n", "\r"} & set(text))

SCALARS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.float64(): st.floats(),
    pa.float32(): st.floats(width=32),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.int8(): st.integers(-128, 127),
    pa.decimal128(38, 18): st.decimals(-(10**19), 10**19, places=18),
    pa.decimal128(5, 0): st.integers(-99_999, 99_999).map(Decimal),
    pa.bool_(): st.booleans(),
    pa.string(): _TEXT,
    pa.binary(): st.binary(max_size=4),
    pa.date32(): st.dates(),
    INSTANT: st.datetimes(timezones=st.just(UTC)),
    pa.timestamp("us"): st.datetimes(),
}  # fmt: skip
IN_CSV = {kind: values for kind, values in SCALARS.items() if kind != pa.binary()} | {pa.string(): _ONE_LINE}


def nested(inner: st.SearchStrategy[tuple[pa.DataType, Any]]) -> st.SearchStrategy[tuple[pa.DataType, Any]]:
    """Lists and structs of other types, each with a strategy of its values."""
    lists = inner.map(lambda one: (pa.list_(one[0]), st.lists(st.none() | one[1], max_size=3)))
    structs = st.lists(inner, min_size=1, max_size=2).map(
        lambda many: (
            pa.struct([(f"f{at}", kind) for at, (kind, _) in enumerate(many)]),
            st.fixed_dictionaries({f"f{at}": st.none() | values for at, (_, values) in enumerate(many)}),
        )
    )
    return lists | structs


JSON_TYPES = st.recursive(st.sampled_from([*SCALARS.items()]), nested, max_leaves=3)


def read_back(form: str, table: pa.Table, zone: str = "UTC") -> list[Any]:
    """Return the rows that the readers of inputs find in what a sink writes."""
    stream = io.BytesIO()
    (write_json if form == "json" else write_csv)(table, stream)
    text = stream.getvalue()
    if form == "csv":
        text = text.partition(b"\n")[2]
    columns = set_as_spark(table.schema, zone, case_sensitive=False)
    found: list[Any] = []
    for one in parse(RowFormat(form, columns, tuple(table.column_names)), text, 0):
        found += [one.error] if isinstance(one, Malformed) else one.to_pylist()
    return found


def tables_of(layout: RowFormat, text: bytes) -> list[dict[str, Any]]:
    """Return the rows of lines, none of which is malformed."""
    found = [*parse(layout, text, 0)]
    assert not [one for one in found if isinstance(one, Malformed)]
    return [row for one in found if isinstance(one, pa.Table) for row in one.to_pylist()]


def same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return (math.isnan(one) and math.isnan(other)) or (
            one == other and math.copysign(1, one) == math.copysign(1, other)
        )
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and one == other


@pytest.mark.parametrize("form", ["json", "csv"])
@given(data=st.data())
def test_what_a_sink_writes_is_read_back(form: str, data: st.DataObject):
    types = JSON_TYPES if form == "json" else st.sampled_from([*IN_CSV.items()])
    chosen = data.draw(st.lists(types, min_size=1, max_size=3))
    rows = [{f"c{at}": data.draw(st.none() | values) for at, (_, values) in enumerate(chosen)} | {"id": number}
            for number in range(data.draw(st.integers(1, 4)))]  # fmt: skip
    schema = pa.schema([*((f"c{at}", kind) for at, (kind, _) in enumerate(chosen)), ("id", pa.int64())])
    table = pa.Table.from_pylist(rows, schema)
    found = read_back(form, table, data.draw(st.sampled_from(["UTC", "Europe/Berlin"])))
    assert same(found, table.to_pylist()), found


@given(data=st.data())
def test_a_row_of_json_is_read_alone_as_arrow_reads_it(data: st.DataObject):
    """Where both read it: else its values would depend on the rows beside it."""
    kind = data.draw(st.sampled_from([kind for kind in SCALARS if not pa.types.is_binary(kind)]))
    text = data.draw(st.sampled_from(["1", "-0.0", "1.50", "1e2", "12345678901234567890", "true", "null", "NaN", '"1.5"', '"2026-01-01"',
                                      '"2026-01-01 00:00:00.1234567"', '"2026-01-01T00:00:00+01:00"', "0.1", "[1]", "20454", '""', "1.0"]))  # fmt: skip
    columns = pa.schema([("v", kind)])
    line = b'{"v": %s}\n' % text.encode()
    alone = table_of(columns, values_of(columns, [line]))
    try:
        arrow = parsed(RowFormat("json", columns, ()), line)
    except pa.ArrowInvalid:
        return
    assert alone is not None
    assert same(alone.to_pylist(), arrow.to_pylist())


LOCAL_TIMES = ["2026-07-01 00:00:00", "2026-03-29 02:30:00", "2026-10-25 02:30:00", "1850-01-01 00:00:00", "2026-07-01", "0001-01-02 00:00:00", "2100-07-01 00:00:00", "2100-01-01 00:00:00",
               "2026-07-01T10:00", "2026-03-29 02:00:00", "2026-03-29 03:00:00"]  # fmt: skip


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Asia/Kathmandu"])
def test_a_time_without_a_zone_is_in_the_session_s_zone(zone: str):
    """As Python's zones have it: the first of two times, and one that a clock skips by the offset before."""
    wanted = [
        (local := datetime.fromisoformat(text)).replace(tzinfo=UTC)
        - (local.replace(tzinfo=ZoneInfo(zone)).utcoffset() or timedelta())
        for text in LOCAL_TIMES
    ]
    found = times_of(pa.chunked_array([[*LOCAL_TIMES, None]]), INSTANT, zone)
    assert found.to_pylist() == [*wanted, None]
    columns = set_as_spark(pa.schema([("t", INSTANT)]), zone, case_sensitive=False)
    for form, line in (("json", '{"t": "%s"}\n'), ("csv", "%s\n")):
        texts = [*LOCAL_TIMES, "2026-07-01T00:00:00Z", "2026-07-01T00:00:00.123456789+02:00"]
        text = "".join(line % one for one in texts).encode()
        rows = [row["t"] for row in tables_of(RowFormat(form, columns, ("t",)), text)]
        last = [datetime(2026, 7, 1, tzinfo=UTC), datetime(2026, 6, 30, 22, 0, 0, 123456, tzinfo=UTC)]
        assert rows == [*wanted, *last], form


def test_a_zone_is_named_as_arrow_knows_it():
    assert zone_of_session("Etc/UTC") == zone_of_session("Z") == "UTC"
    assert zone_of_session("GMT+08:00") == "+08:00"
    with pytest.raises(ConfigError, match=r"spark\.sql\.session\.timeZone is 'GMT\+8', .* set it to a region"):
        zone_of_session("GMT+8")


CSV: dict[bytes, Any] = {
    b"a,NaN": ("a", math.nan), b"a,-Infinity": ("a", -math.inf), b",1": (None, 1.0), b'"",1': ("", 1.0), b'NaN,""': ("NaN", None),
    b'null,"3"': ("null", 3.0), b"NA,": ("NA", None), b"N/A, 4": ("N/A", 4.0), b'"","",': None, b"a,null": None, b'a,"x"': None,
}  # fmt: skip


@pytest.mark.parametrize("together", [False, True])
def test_a_field_of_csv_is_null_only_if_nothing_is_there(together: bool):
    columns = pa.schema([("k", pa.string()), ("v", pa.float64())])
    layout = RowFormat("csv", columns, ("k", "v"))
    texts = [b"".join(line + b"\n" for line in CSV)] if together else [line + b"\n" for line in CSV]
    found = [one for text in texts for one in parse(layout, text, 0)]
    rows = [(row["k"], row["v"]) for one in found if isinstance(one, pa.Table) for row in one.to_pylist()]
    assert same([[*row] for row in rows], [[*row] for row in CSV.values() if row is not None])
    assert len([one for one in found if isinstance(one, Malformed)]) == list(CSV.values()).count(None)


def test_bytes_are_in_base64_and_other_texts_are_malformed():
    for kind, value in ((pa.binary(), '"%s"'), (pa.list_(pa.binary()), '["%s"]')):
        columns = pa.schema([("b", kind)])
        check_columns("json", columns)
        text = b"".join(
            b'{"b": %s}\n' % (value % one).encode() for one in (b64encode(b"\x00\xff").decode(), "no base64!")
        )
        good, bad = parse(RowFormat("json", columns, ()), text, 0)
        assert isinstance(good, pa.Table)
        assert good["b"].to_pylist() == ([b"\x00\xff"] if kind == pa.binary() else [[b"\x00\xff"]])
        assert isinstance(bad, Malformed)


@pytest.mark.parametrize("form", ["json", "csv"])
@pytest.mark.parametrize(
    "text",
    [
        "1767225600",
        "9.4e26",
        "1e40",
        "1e-9",
        "9e54740993",
        "9e-54740993",
        "12345678901234567890123456789012345678901234567890",
        "1_000",
        "0x10",
        "1.105",
    ],
)
def test_a_decimal_has_no_more_digits_than_its_type(form: str, text: str):
    """Arrow's parsers let too many in; of a number with an exponent they make another one, or end the process."""
    columns = pa.schema([("d", pa.decimal128(10, 2)), ("id", pa.int64())])
    lines = {"json": '{"d": %s, "id": 7}\n', "csv": "%s,7\n"}[form]
    value = f'"{text}"' if form == "json" and not text[-1].isdigit() else text
    good = [lines % one for one in ("1.1", "1e2", "-1E-2", "99999999.99")]
    found = list(parse(RowFormat(form, columns, ("d", "id")), "".join([good[0], lines % value, *good[1:]]).encode(), 0))
    assert [len([one for one in found if isinstance(one, Malformed)])] == [1]
    rows = [row["d"] for one in found if isinstance(one, pa.Table) for row in one.to_pylist()]
    assert rows == [Decimal("1.1"), Decimal(100), Decimal("-0.01"), Decimal("99999999.99")]


@pytest.mark.parametrize("text", ["20454", "true", "1e2"])
def test_a_number_is_not_read_as_a_date(text: str):
    columns = pa.schema([("d", pa.date32()), ("many", pa.list_(pa.date32()))])
    line = b'{"d": "2026-01-01", "many": ["2026-01-01", null]}\n'
    assert tables_of(RowFormat("json", columns, ()), line) == [
        {"d": date(2026, 1, 1), "many": [date(2026, 1, 1), None]}
    ]
    for lone in ('{"d": %s}\n', '{"many": [%s]}\n'):
        (bad,) = parse(RowFormat("json", columns, ()), (lone % text).encode(), 0)
        assert isinstance(bad, Malformed)
