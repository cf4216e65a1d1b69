"""Current answers, read without Spark as reports read them, and with Spark."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

import skypane as sp
from skypane.reporting import snapshot


def read_answers(folder: Path) -> pa.Table:
    """Return the rows of the last version of each window in a folder of answers."""
    rows = snapshot.answers(folder)
    assert rows is not None, f"no answers in {folder}"
    return rows


def current(folder: Path) -> dict[Any, Counter[str]]:
    """Return the rows of the last version of each window that has ended, in the folder `out`."""
    found: dict[Any, Counter[str]] = defaultdict(Counter)
    for row in read_answers(folder / "out").to_pylist():
        found[row.pop("window_start")][repr(row)] += 1
    return dict(found)


def read_by_spark(spark: SparkSession, folder: Path) -> dict[Any, tuple[bool, Counter[str]]]:
    """Return whether the last version of each window is early, and its rows."""
    found: dict[Any, tuple[bool, Counter[str]]] = {}
    rows = sp.read_answers(spark, folder).toArrow()
    for row in rows.drop_columns([name for name in ("version",) if name in rows.column_names]).to_pylist():
        early, answers = found.setdefault(row.pop("window_start"), (row.pop("early", False), Counter()))
        assert row.pop("early", early) is early
        answers[repr(row)] += 1
    return found
