"""The table of docs/values.md, from values that are written and read: `python -m measure.values docs`."""

from __future__ import annotations

import argparse
import io
import json
import math
import tempfile
from base64 import b64encode
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from measure.record_values import registry
from measure.tables import markdown_table, replace_between
from skypane.runtime.line_rows import parse
from skypane.runtime.row_parser import Malformed, RowFormat, check_columns
from skypane.runtime.spark.sinks.directory import Directory
from skypane.runtime.spark.sinks.text_format import write_csv, write_json
from skypane.runtime.spark.sources.many import parquet
from skypane.runtime.spark.sources.many.input_kind import OffsetRange
from skypane.types import ConfigError

PAGE: Final = "values.md"
_FIRST, _LAST = date.min, date.max


class Kind(NamedTuple):
    """A type of Spark and Arrow, and values of it, each with its name in the table."""

    name: str
    type: pa.DataType
    values: dict[str, Any]


def _whole(bits: int) -> dict[str, Any]:
    return {"the least": -(1 << bits - 1), "the greatest": (1 << bits - 1) - 1}


_FLOATS: Final = {"-0.0": -0.0, "NaN": math.nan, "the infinities": math.inf, "others": 1.1}
_TIMES: Final = {
    "the first of year 1": datetime.combine(_FIRST, time.min),
    "the last of year 9999": datetime.combine(_LAST, time.max),
}

KINDS: Final = (
    Kind("boolean", pa.bool_(), {"both": True}),
    *(Kind(name, pa.int64() if bits == 64 else getattr(pa, f"int{bits}")(), _whole(bits))
      for name, bits in (("tinyint", 8), ("smallint", 16), ("int", 32), ("bigint", 64))),
    Kind("float", pa.float32(), _FLOATS | {"others": 1.5, "the smallest": 2.0**-149}),
    Kind("double", pa.float64(), _FLOATS | {"the smallest": 5e-324}),
    Kind("decimal(38,18)", pa.decimal128(38, 18), {"the smallest": Decimal(1).scaleb(-18), "38 digits": Decimal(f"{'9' * 20}.{'9' * 18}")}),
    Kind("string", pa.string(), {"an empty one": "", "NULL, NaN": "NULL", "blanks": " a ", "quotes": '"', "a backslash": "\\",
                                 "line ends": "a\nb"}),
    Kind("binary", pa.binary(), {"texts": b"a", "other bytes": b"\x00\xff"}),
    Kind("date", pa.date32(), {"the first of year 1": _FIRST, "the last of year 9999": _LAST}),
    Kind("timestamp", pa.timestamp("us", "UTC"), {name: one.replace(tzinfo=UTC) for name, one in _TIMES.items()}),
    Kind("timestamp_ntz", pa.timestamp("us"), _TIMES),
    Kind("array<double>", pa.list_(pa.float64()), {"NaN": [math.nan], "a null within": [None, 1.1], "others": [1.1], "an empty one": []}),
    Kind("array<date>", pa.list_(pa.date32()), {"any": [date(2026, 1, 1)]}),
    Kind("struct<a: binary, b: timestamp>", pa.struct([("a", pa.binary()), ("b", pa.timestamp("us", "UTC"))]),
         {"any": {"a": b"\xff", "b": datetime(2026, 1, 1, tzinfo=UTC)}}),
    Kind("map<string, int>", pa.map_(pa.string(), pa.int32()), {"any": [("a", 1)]}),
)  # fmt: skip


def _json(value: Any) -> Any:
    """Return a value as another program writes it in JSON."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity"
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, date):
        return value.isoformat() + ("Z" if getattr(value, "tzinfo", None) else "")
    if isinstance(value, list):
        return dict(value) if value and isinstance(value[0], tuple) else [_json(one) for one in value]
    if isinstance(value, dict):
        return {name: _json(one) for name, one in value.items()}
    return str(value) if isinstance(value, Decimal) else value


def _text(value: Any) -> str:
    """Return a value as another program writes it in CSV."""
    text = value.decode("latin-1") if isinstance(value, bytes) else str(_json(value)).replace("+00:00Z", "Z")
    return '"' + text.replace('"', '""') + '"' if text == "" or {'"', "\n", ","} & set(text) else text


def _read_json(kind: Kind, value: Any) -> list[Any]:
    line = json.dumps({"v": _json(value)}).replace("+00:00Z", "Z").encode() + b"\n"
    return _rows("json", kind, line)


def _read_csv(kind: Kind, value: Any) -> list[Any]:
    return _rows("csv", kind, f"{_text(value)},\n".encode("latin-1" if isinstance(value, bytes) else "utf-8"))


def _read_parquet(kind: Kind, value: Any) -> list[Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "a.parquet"))
        pq.write_table(pa.table({"v": pa.array([value], kind.type)}), path)
        given = parquet.of({"parquet": path}, "input")
        read = [one for _, one in parquet.read([OffsetRange(given, 0, 1)], pa.schema([("v", kind.type)]))]
    return [one if isinstance(one, Malformed) else one["v"].to_pylist()[0] for one in read]


def _written_json(kind: Kind, value: Any) -> list[Any]:
    return _written("json", kind, value, write_json)


def _written_csv(kind: Kind, value: Any) -> list[Any]:
    return _written("csv", kind, value, write_csv)


def _written(form: Literal["json", "csv"], kind: Kind, value: Any, write: Callable[[pa.Table, Any], None]) -> list[Any]:
    rows, stream = pa.table({"v": pa.array([value], kind.type), "n": pa.nulls(1, pa.int32())}), io.BytesIO()
    Directory("answers", form).check(rows.schema)
    write(rows, stream)
    text = stream.getvalue()
    return _rows(form, kind, text.partition(b"\n")[2] if form == "csv" else text)


def _rows(form: str, kind: Kind, text: bytes) -> list[Any]:
    columns = pa.schema([("v", kind.type), ("n", pa.int32())])
    check_columns(form, columns)
    found = parse(RowFormat(form, columns, ("v", "n")), text, 0)
    return [value for one in found for value in ([one] if isinstance(one, Malformed) else one["v"].to_pylist())]


DIRECTIONS: Final[dict[str, Callable[[Kind, Any], list[Any]]]] = {
    "JSON, read": _read_json, "CSV, read": _read_csv, "parquet, read": _read_parquet, "JSON, written": _written_json,
    "CSV, written": _written_csv,
}  # fmt: skip


def outcome(kind: Kind, value: Any, way: Callable[[Kind, Any], list[Any]]) -> str:
    """Return "exact", "malformed", "refused", or the value that was read."""
    try:
        found = way(kind, value)
    except ConfigError:
        return "refused"
    if len(found) == 1 and _same(found[0], value):
        return "exact"
    return "malformed" if any(isinstance(one, Malformed) for one in found) else f"read as {found}"


def _same(one: Any, other: Any) -> bool:
    return repr(one) == repr(other) or (not isinstance(one, float) and bool(one == other))


def cell(kind: Kind, way: Callable[[Kind, Any], list[Any]]) -> str:
    """Return what becomes of the values of a type."""
    found = {name: outcome(kind, value, way) for name, value in kind.values.items()}
    others = [f"{what}: {name}" for name, what in found.items() if what != "exact"]
    if not others:
        return "exact"
    if len({*found.values()}) == 1:
        return next(iter(found.values()))
    return "exact; " + ", ".join(others)


def table() -> str:
    """Return the table."""
    with registry() as messages:
        of_messages: dict[str, Callable[[Kind, Any], list[Any]]] = {
            f"{form}, read": lambda kind, value, read=read: read(kind.type, value)  # type: ignore[misc]
            for form, read in messages.items()
        }
        ways = dict(sorted((DIRECTIONS | of_messages).items(), key=lambda way: way[0].endswith("written")))
        rows = [(f"`{kind.name}`", *(cell(kind, way) for way in ways.values())) for kind in KINDS]
    return markdown_table(("type", *ways), rows)


def main() -> None:
    """Write the table into the page."""
    parser = argparse.ArgumentParser(prog="python -m measure.values", description=__doc__)
    parser.add_argument("folder", type=Path, help="of the docs")
    replace_between(parser.parse_args().folder / PAGE, "values", table())


if __name__ == "__main__":
    main()
