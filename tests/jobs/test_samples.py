"""Files of many kinds, from which a first job is written: Spark reads their rows by its schema and options, or a remark says which not."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from skypane.jobs.sample_file import SampleFile, read_sample
from skypane.types import ConfigError

START = datetime(2026, 3, 1, tzinfo=UTC)

COLUMNS: dict[str, Callable[[np.random.Generator], Any]] = {
    "zip": lambda rng: f"{rng.integers(0, 99_999):05}",
    "id": lambda rng: str(10**19 + int(rng.integers(0, 10**9))),
    "phone": lambda rng: f"+49{rng.integers(10**6, 10**7)}",
    "code": lambda rng: f"{rng.integers(1, 99)}E{rng.integers(1, 9)}",
    "count": lambda rng: int(rng.integers(-(10**12), 10**12)),
    "price": lambda rng: round(float(rng.normal()), 3),
    "small": lambda rng: float(rng.normal()) * 1e-9,
    "open": lambda rng: bool(rng.random() < 0.5),
    "text": lambda rng: str(rng.choice(["a", "", "null", "NA", " b ", "x;y", "a,b", "Zürich", 'q"q', "back\\slash", "it's"])),
    "lines": lambda rng: str(rng.choice(["one", "two\nlines", "thr\r\nee"])),
    "money": lambda rng: f"{rng.integers(0, 999)},{rng.integers(0, 99):02}",
    "day": lambda rng: f"{START + timedelta(days=int(rng.integers(0, 99))):%Y-%m-%d}",
}  # fmt: skip
AS_TEXT = {"zip", "id", "phone", "code", "text", "lines", "money"}
TIMES = ("%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S.%f", "%Y-%m-%dT%H:%M:%S+02:00", "%Y-%m-%d %H:%M")


def drawn(seed: int) -> tuple[str, bytes, list[dict[str, Any]]]:
    """Return the ending, the bytes and the rows of a file."""
    rng = np.random.default_rng(seed)
    form = str(rng.choice(["csv", "csv", "jsonl", "json"]))
    names = [str(name) for name in rng.choice([*COLUMNS], 4, replace=False)]
    written = str(rng.choice(TIMES))
    rows: list[dict[str, Any]] = [
        {"at": (START + timedelta(seconds=int(rng.integers(0, 10**6)))).strftime(written)}
        | {name: COLUMNS[name](rng) for name in names}
        for _ in range(30)
    ]
    mark = b"\xef\xbb\xbf" if rng.random() < 0.2 else b""
    if form == "csv":
        text = io.StringIO(newline="")
        lines = csv.DictWriter(
            text, rows[0], delimiter=str(rng.choice([",", ",", ";", "\t", "|"])), lineterminator=str(rng.choice(["\n", "\r\n"])),
            quoting=csv.QUOTE_ALL if rng.random() < 0.3 else csv.QUOTE_MINIMAL,
        )  # fmt: skip
        lines.writeheader()
        lines.writerows(
            {name: str(value).lower() if value in {True, False} else value for name, value in row.items()}
            for row in rows
        )
        return form, mark + text.getvalue().encode(), rows
    if form == "jsonl":
        return form, mark + "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode(), rows
    return form, mark + json.dumps(rows, indent=int(rng.integers(0, 3)) or None).encode(), rows


def read_by_spark(spark: SparkSession, path: Path, sample: SampleFile) -> list[dict[str, Any]]:
    reader = spark.read.format(sample.format).schema(f"{sample.schema}, _corrupt_record string")
    for option, value in sample.options.items():
        reader = reader.option(option, value)
    found: list[dict[str, Any]] = reader.load(str(path)).toArrow().to_pylist()
    return found


def test_spark_reads_a_drawn_file_by_the_schema_and_options_of_its_sample(spark: SparkSession, tmp_path: Path):
    for seed in range(50):
        ending, text, rows = drawn(seed)
        path = tmp_path / f"{seed}.{ending}"
        path.write_bytes(text)
        sample = read_sample(path)
        about = f"{seed}: {sample.schema}, {sample.options}, {sample.remarks}"
        found = read_by_spark(spark, path, sample)
        assert len(found) == len(rows), about
        assert not sample.remarks, about
        for name in AS_TEXT & rows[0].keys():
            assert sample.rows.schema.field(name).type == pa.string(), f"{name}: {about}"
        for row, wanted in zip(found, rows, strict=True):
            assert row["_corrupt_record"] is None, about
            assert row["at"] is not None, about
            for name in wanted.keys() - {"at", "day", "small"}:
                right = wanted[name] if name in {"count", "price", "open"} else str(wanted[name]).replace("\r\n", "\n")
                value = row[name].replace("\r\n", "\n") if isinstance(row[name], str) else row[name]
                assert value == right or (value is None and right == ""), f"{name}: {about}"


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-16-le", "utf-32", "cp1252"])
def test_a_sample_in_another_encoding_is_one_sentence(encoding: str, tmp_path: Path):
    (tmp_path / "a.csv").write_bytes("at,place\n2026-01-01T00:00:00Z,Zürich\n".encode(encoding))
    with pytest.raises(ConfigError, match=r"^the sample .* is (not )?in [^\n]*: iconv -f [A-Z0-9-]+ -t UTF-8$"):
        read_sample(tmp_path / "a.csv")
