"""The answers of many static queries, by name: what differs or fails is named."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from tests.rows import multiset

Name = TypeVar("Name", bound=Hashable)


def tables(frames: Mapping[Name, DataFrame]) -> dict[Name, pa.Table]:
    """Return the rows of each DataFrame."""
    return {name: _rows(name, frame) for name, frame in frames.items()}


def bags(frames: Mapping[Name, DataFrame]) -> dict[Name, Counter[str]]:
    """Return the rows of each DataFrame, without their order."""
    return {name: multiset(rows) for name, rows in tables(frames).items()}


def kept(frame: DataFrame, conditions: Mapping[Name, str | Column]) -> dict[Name, pa.Table]:
    """Return the rows that Spark keeps by each condition; a condition is a column of one query."""
    found = [one if isinstance(one, Column) else sf.expr(one) for one in conditions.values()]
    whole = frame.select("*", *(one.alias(f"kept {number}") for number, one in enumerate(found))).toArrow()
    return {name: whole.filter(whole[f"kept {number}"]).select(frame.columns) for number, name in enumerate(conditions)}


def assert_same(pairs: Mapping[Name, tuple[DataFrame, DataFrame]]) -> dict[Name, Counter[str]]:
    """Compare the rows of each pair, without their order, and return them."""
    found, wanted = (bags({name: pair[side] for name, pair in pairs.items()}) for side in (0, 1))
    assert differing(found, wanted) == {}
    return wanted


def differing(
    found: Mapping[Name, Counter[str]], wanted: Mapping[Name, Counter[str]]
) -> dict[Name, dict[str, Counter[str]]]:
    """Return what is too much and what is missing, of those that differ."""
    return {
        name: {"not wanted": found[name] - rows, "missing": rows - found[name]}
        for name, rows in wanted.items()
        if found[name] != rows
    }


def _rows(name: Hashable, frame: DataFrame) -> pa.Table:
    try:
        return frame.toArrow()
    except Exception as error:
        error.add_note(f"the answer of {name!r}")
        raise
