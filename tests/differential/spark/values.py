"""Drawn values at the edges: texts of JSON and CSV, and columns of parquet, read by inputs and by Spark's own readers.

A value that inputs read is the one that Spark reads, or, where Spark reads none, the one that the text or the file says, of the
kinds that MORE names; what does not parse is malformed. Where Spark reads a value and inputs refuse it, nothing is wrong.
"""

from __future__ import annotations

import json
import math
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from tests.differential.spark.seeds import run

from skypane.runtime.columns_to_read import set_as_spark
from skypane.runtime.line_rows import parse
from skypane.runtime.local_times import zone_of_session
from skypane.runtime.row_parser import Malformed, RowFormat
from skypane.runtime.spark import versions
from skypane.runtime.spark.sinks.text_format import _plain as counted
from skypane.runtime.spark.sources.many import parquet
from skypane.runtime.spark.sources.many.input_kind import OffsetRange
from skypane.runtime.spark.spark_schema import struct_of

EACH: Final = (200, 200, 511, 513, 1_100)
"""Texts of each type and form: fewer and more than the lines of JSON that are read one by one."""
ZONES: Final = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata")
TYPES: Final = (
    "boolean", "tinyint", "int", "bigint", "float", "double", "decimal(10,2)", "decimal(38,18)", "string", "binary", "date", "timestamp",
    "timestamp_ntz",
)  # fmt: skip
NESTED: Final = (
    "array<double>",
    "array<binary>",
    "array<date>",
    "array<timestamp>",
    "array<timestamp_ntz>",
    "struct<a: binary, b: timestamp_ntz>",
    "array<decimal(10,2)>",
)

_WORDS: Final = (
    "", " ", "a", "NaN", "nan", "-NaN", "Infinity", "-Infinity", "INF", "+INF", "null", "NULL", "NA", "N/A", "true", "false", "True", "t",
    "yes", "1", "0", "-0", "-0.0", "1.0", "1.5", "1.105", "0.1", "1e2", "1E-7", "1e300", "5e-324", "9007199254740993", "9223372036854775807",
    "9223372036854775808", "-129", "127", "128", "+4", " 4", "4 ", "0x10", "1_000", "1,5", "01", "1.", ".5", "12345678.90", "123456789.01",
    "0.000000000000000001", "2026-01-01", "2026-1-1", "2026-13-01", "0001-01-01", "9999-12-31", "2026-01-01 00:00:00", "2026-01-01T00:00:00",
    "2026-01-01T00:00:00Z", "2026-01-01T00:00:00+01:00", "2026-01-01 00:00:00.123", "2026-01-01T00:00:00.1234567", "2026-01-01T00:00:00.123456789Z",
    "2026-03-29 02:30:00", "2026-10-25 02:30:00", "2026-03-08 02:30:00", "1850-06-01 12:00:00", "2026-01-01T25:00:00", "1767225600", "20454",
    "YQ==", "AP8=", "YQ", "Zürich", "\ufeffx", "'", "\\", "\t", "a b", "[1]", "{}",
)  # fmt: skip


_HUGE: Final = re.compile(r"[eE][+-]?\d{4,}")
"""An exponent of which Spark makes a decimal in minutes, or in hours."""


def _random_text(rng: np.random.Generator) -> str:
    """Return a number or a time, or a word with a letter changed."""
    kind = rng.integers(0, 4)
    if kind == 0:
        return str(Decimal(int(rng.integers(-(10**12), 10**12))).scaleb(-int(rng.integers(0, 8))))
    if kind == 1:
        return repr(float(rng.normal() * 10.0 ** int(rng.integers(-30, 30))))
    if kind == 2:
        moment = str(np.datetime64(int(rng.integers(-(10**16), 10**16)), "us"))
        return moment[: int(rng.choice([10, 16, 19, 23, 26]))] + str(rng.choice(["", "", "Z", "+05:30"]))
    word = str(rng.choice(_WORDS))
    at = int(rng.integers(0, len(word) + 1))
    return word[:at] + str(rng.choice(list("0159-+.:eTZ "))) + word[at + 1 :]


def _in_json(text: str, rng: np.random.Generator, kind: str) -> str:
    """Return a text as a value of JSON: as a text, or unchanged if it is a value."""
    value = json.dumps(text, ensure_ascii=False)
    if rng.random() < 0.5:
        try:
            json.loads(text, parse_constant=_refused)
            value = text
        except ValueError:
            pass
    if kind.startswith("array"):
        return f"[{value}]"
    return f'{{"a": {value}, "b": {value}}}' if kind.startswith("struct") else value


def _refused(_constant: str) -> None:
    raise ValueError


def _in_csv(text: str, rng: np.random.Generator) -> str:
    if rng.random() < 0.2 or {'"', ",", "\n", "\r"} & set(text):
        return '"' + text.replace('"', '""') + '"'
    return text


def differing_texts(
    spark: SparkSession, rng: np.random.Generator, form: str, kind: str, count: int, folder: Path
) -> Iterator[str]:
    """Yield the cells of a type whose values are neither Spark's nor refused."""
    drawn = (str(rng.choice(_WORDS)) if rng.random() < 0.4 else _random_text(rng) for _ in range(count))
    texts = [_HUGE.sub("", text) for text in drawn]
    values = [_in_json(text, rng, kind) if form == "json" else _in_csv(text, rng) for text in texts]
    lines = [f'{{"id": {at}, "v": {value}}}' if form == "json" else f"{at},{value}" for at, value in enumerate(values)]
    path = folder / f"cells.{form}"
    path.write_text("".join(f"{line}\n" for line in lines))
    schema = f"id bigint, v {kind}"
    # PERMISSIVE leaves a field null that does not parse, and keeps the line
    read = spark.read.schema(f"{schema}, _corrupt_record string").format(form)
    theirs = {row["id"]: row for row in _rows(read.load(str(path)).toArrow())}
    zone = zone_of_session(str(spark.conf.get("spark.sql.session.timeZone")))
    columns = set_as_spark(versions.arrow_columns(struct_of(schema)), zone, case_sensitive=False)
    for found in parse(RowFormat(form, columns, ("id", "v")), path.read_bytes(), 0):
        for row in [] if isinstance(found, Malformed) else _rows(found):
            at = row["id"]
            their = theirs[at]["v"]
            is_read = theirs[at]["_corrupt_record"] is None
            if form == "csv" and kind in {"string", "binary"} and values[at] == '""' and not row["v"]:
                continue  # Spark has null, also where its own writer has written an empty text
            if not (is_read and _same(row["v"], their)) and not _is_more(form, kind, texts[at], row["v"], is_read):
                shown = their if is_read else "nothing"
                yield f"{form} {kind} in {zone}: {values[at]!r} is {row['v']!r}, and Spark reads {shown!r}"


def _is_more(form: str, kind: str, text: str, value: Any, is_read: bool) -> bool:
    """Return whether a value is one that inputs read where Spark reads none, or another than Spark, as the docs say."""
    if is_read:
        return form == "csv" and (kind == "binary" or "\\" in text)  # a backslash is a character, as RFC 4180 has it
    return any(rule(form, kind, text, value) for rule in MORE.values())


def _is_special(kind: str, text: str, value: Any) -> bool:
    return (
        ("double" in kind or kind == "float")
        and _folded(text) in {"nan", "inf", "infinity"}
        and not math.isfinite(value[0] if isinstance(value, list) else value)
    )


MORE: Final[dict[str, Callable[[str, str, str, Any], bool]]] = {
    "special numbers in any case": lambda _form, kind, text, value: _is_special(kind, text, value),
    "truth as 0 and 1": lambda form, kind, text, value: form == "csv" and kind == "boolean" and text.strip() in {"0", "1"} and value == (text.strip() == "1"),
    "blanks around a number": lambda form, _kind, text, value: form == "csv" and text != text.strip() and _number(text) == value,
    "whole numbers in base 16": lambda form, _kind, text, value: form == "csv" and "0x" in text and _number(text) == value,
    "times without seconds": lambda _form, kind, text, _value: "timestamp" in kind and re.search(r"T\d\d:\d\d([Z+]|$)", text) is not None,
}  # fmt: skip
"""What inputs read though Spark does not: a text with one meaning."""


def _number(text: str) -> Decimal | int | None:
    with suppress(ArithmeticError, ValueError):
        return int(text, 16) if "0x" in text else Decimal(text.strip())
    return None


def _folded(text: str) -> str:
    return text.strip().lower().lstrip("+-")


def _rows(table: pa.Table) -> list[dict[str, Any]]:
    """Return rows with times as whole numbers, which have no bounds."""
    rows: list[dict[str, Any]] = table.cast(
        pa.schema([one.with_type(counted(one.type)) for one in table.schema])
    ).to_pylist()
    return rows


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return one == other or (math.isnan(one) and math.isnan(other))
    if isinstance(one, dict) and isinstance(other, dict):
        return all(_same(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


STORED: Final[dict[str, Callable[[np.random.Generator], pa.Array]]] = {
    "int32": lambda rng: pa.array(rng.integers(-(2**31), 2**31, 3), pa.int32()),
    "int64": lambda rng: pa.array(rng.integers(-(2**62), 2**62, 3) >> int(rng.integers(0, 60))),
    "float": lambda rng: pa.array(rng.normal(size=3), pa.float32()),
    "double": lambda rng: pa.array(rng.normal(size=3) * 10.0 ** float(rng.integers(-300, 300))),
    "decimal": lambda rng: pa.array([Decimal(int(one)).scaleb(-2) for one in rng.integers(-(10**9), 10**9, 3)], pa.decimal128(12, 2)),
    "string": lambda rng: pa.array([_random_text(rng) for _ in range(3)]),
    "binary": lambda rng: pa.array([rng.bytes(3) for _ in range(3)]),
    "bool": lambda _rng: pa.array([True, False, None]),
    "date": lambda rng: pa.array(rng.integers(-(10**5), 10**5, 3), pa.int32()).cast(pa.date32()),
    "instant": lambda rng: pa.array(rng.integers(-(10**15), 10**15, 3)).cast(pa.timestamp("us", "UTC")),
    "local": lambda rng: pa.array(rng.integers(-(10**15), 10**15, 3)).cast(pa.timestamp("us")),
    "millis": lambda rng: pa.array(rng.integers(-(10**12), 10**12, 3)).cast(pa.timestamp("ms", "UTC")),
    "array": lambda rng: pa.array([rng.integers(0, 9, 2).tolist(), None, []], pa.list_(pa.int32())),
}  # fmt: skip


def differing_parquet(
    spark: SparkSession, rng: np.random.Generator, kind: str, stored: str, folder: Path
) -> str | None:
    """Return how the values of a file differ from those that Spark reads, None if they do not, or one of both reads none."""
    rows = STORED[stored](rng)
    name = str(rng.choice(["v", "V"]))
    path = folder / "cells.parquet"
    pq.write_table(pa.table({name: rows}), path, use_deprecated_int96_timestamps=bool(rng.random() < 0.2))
    schema = struct_of(f"v {kind}")
    given = parquet.of({"parquet": str(path)}, "input")
    columns = set_as_spark(versions.arrow_columns(schema), "UTC", case_sensitive=False)
    ours = [one for _, one in parquet.read([OffsetRange(given, 0, len(rows))], columns)]
    if any(isinstance(one, Malformed) for one in ours):
        return None
    try:
        theirs = [row["v"] for row in _rows(spark.read.schema(schema).parquet(str(path)).toArrow())]
    except (PySparkException, Py4JJavaError, UnicodeDecodeError):
        theirs = None
    values = [row["v"] for one in ours if isinstance(one, pa.Table) for row in _rows(one)]
    exact = [row["v"] for row in _rows(pa.table({"v": rows.cast(pa.timestamp("us")) if stored == "millis" else rows}))]
    alike = pa.types.is_temporal(rows.type) == pa.types.is_temporal(
        columns.field("v").type
    )  # times have no unit as numbers
    if (theirs is None or not _same(values, theirs)) and not (
        alike and all(_equal(one, other) for one, other in zip(values, exact, strict=True))
    ):
        return f"parquet {stored} {exact} as {kind} is {values}, and Spark reads {theirs}"
    return None


def _equal(one: Any, other: Any) -> bool:
    """Return whether values are equal, a decimal to its nearest float."""
    if isinstance(one, float) and isinstance(other, Decimal):
        return one in {float(other), float(np.float32(str(other)))}
    return _same(one, other)


def tried(spark: SparkSession, seed: int, count: int | None = None) -> tuple[list[str], int]:
    """Draw so many cells of each type and form, None: of EACH; return those that differ, and how many there were."""
    rng, count = np.random.default_rng([seed, 2]), count or EACH[seed % len(EACH)]
    spark.sparkContext.setLogLevel("OFF")  # what Spark refuses is logged with its stack
    spark.conf.set("spark.sql.session.timeZone", ZONES[seed % len(ZONES)])
    found, cells = list[str](), 0
    with tempfile.TemporaryDirectory() as folder:
        for form, kinds in (("json", (*TYPES, *NESTED)), ("csv", TYPES)):
            for kind in kinds:
                found += differing_texts(spark, rng, form, kind, count, Path(folder))
                cells += count
        for kind, stored in product(TYPES, STORED):
            if (one := differing_parquet(spark, rng, kind, stored, Path(folder))) is not None:
                found.append(one)
            cells += 3
    return found, cells


def main() -> int:
    """Run what the arguments say; return the exit code."""
    return run("values", tried)


if __name__ == "__main__":
    sys.exit(main())
