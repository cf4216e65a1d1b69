"""Rows, windows and queries for the tests of operators and runtimes: few, small, full of ties and boundaries.

Event times are a few microseconds around the epoch, so that panes are as short as a tick and any number is readable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import strategies as st

from skypane.operators.query import Query
from skypane.operators.skyline import Skyline
from skypane.preference import Preference
from skypane.windows import Windows

UTC = pa.timestamp("us", "UTC")
SCHEMA = pa.schema([("time", UTC), ("x", pa.float64()), ("y", pa.float64()), ("label", pa.string())])
SKYLINE = Skyline(Preference.of("x MIN, y MAX"))
NAN = float("nan")

LENGTHS = st.integers(1, 60)


def windows(lengths: st.SearchStrategy[int] = LENGTHS) -> st.SearchStrategy[Windows]:
    """Windows of any shape: the length no multiple of the slide, the offset before or after the epoch."""
    shapes = lengths.flatmap(lambda w: st.tuples(st.just(w), st.integers(1, w)))
    return st.builds(lambda shape, offset: Windows(shape[0], shape[1], offset), shapes, st.integers(-70, 70))


def table(
    times: Sequence[int | None], xs: Sequence[float | None] | None = None, ys: Sequence[float | None] | None = None
) -> pa.Table:
    """Return rows of SCHEMA at these times; the labels distinguish the rows."""
    n = len(times)
    columns = [times, [1.0] * n if xs is None else xs, [1.0] * n if ys is None else ys, [f"r{i}" for i in range(n)]]
    arrays = [pa.array(column, kind) for column, kind in zip(columns, (pa.int64(), *SCHEMA.types[1:]), strict=True)]
    return pa.Table.from_arrays([arrays[0].cast(UTC), *arrays[1:]], schema=SCHEMA)


_GRADES = st.sampled_from([-1.0, -0.0, 0.0, 0.5, 1.0, 2.0, 3.0, float("inf")])
_BAD_GRADES = st.sampled_from([None, NAN])


def times(low: int = -40, high: int = 90) -> st.SearchStrategy[list[int]]:
    """Event times, as a rule nearly sorted: uniform ones alone miss what goes wrong at a boundary."""
    steps = st.lists(st.integers(-3, 5), max_size=25)
    nearly = st.builds(lambda start, steps: _walk(start, steps, low, high), st.integers(low, high), steps)
    return st.one_of(nearly, nearly, st.lists(st.integers(low, high), max_size=25))


@st.composite
def tables(draw: st.DrawFn, *, clean: bool = True) -> pa.Table:
    """One batch of rows, cut into chunks at random; with a null or NaN here and there unless `clean`."""
    at: list[int | None] = list(draw(times()))
    grades = _GRADES if clean else st.one_of(_GRADES, _GRADES, _GRADES, _BAD_GRADES)
    if not clean and at and draw(st.booleans()):
        at[draw(st.integers(0, len(at) - 1))] = None
    xs, ys = (draw(st.lists(grades, min_size=len(at), max_size=len(at))) for _ in "xy")
    return chunked(table(at, xs, ys), draw(st.lists(st.integers(0, len(at)), max_size=3)))


def chunked(rows: pa.Table, cuts: Sequence[int]) -> pa.Table:
    """Return the same rows in chunks cut at these places; a chunk may be empty."""
    return pa.concat_tables(split(rows, cuts))


def split(rows: pa.Table, cuts: Sequence[int]) -> list[pa.Table]:
    """Return the rows as consecutive slices, which share memory and have offsets."""
    at = [0, *sorted(cuts), rows.num_rows]
    return [rows.slice(begin, end - begin) for begin, end in pairwise(at)]


def multiset(rows: pa.Table | Sequence[Any]) -> Counter[str]:
    """Rows without their order; NaN equals itself, -0.0 differs from 0.0."""
    return Counter(map(repr, rows.to_pylist() if isinstance(rows, pa.Table) else rows))


def _walk(start: int, steps: Sequence[int], low: int, high: int) -> list[int]:
    walked = [start]
    for step in steps:
        walked.append(min(max(walked[-1] + step, low), high))
    return walked


@dataclass(frozen=True)
class Bag(Query):
    """The query whose answer is all rows of a window: it shows what was in, what was not, and what came twice."""

    required: Sequence[str] = ("x",)

    def validate(self, schema: pa.Schema) -> None:
        del schema

    def lift(self, rows: pa.Table) -> pa.Table:
        return rows

    def combine(self, partials: Sequence[pa.Table]) -> pa.Table:
        return pa.concat_tables(partials)

    def lower(self, partial: pa.Table) -> pa.Table:
        return partial

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        return schema

    def describe(self) -> dict[str, Any]:
        return {"query": "bag"}


@dataclass(frozen=True)
class Counts(Query):
    """Rows per value of a column: a user's own query, with partials and answers unlike the rows that go in."""

    key: str

    @property
    def required(self) -> Sequence[str]:
        return ()

    def validate(self, schema: pa.Schema) -> None:
        del schema

    def reads(self, schema: pa.Schema) -> Sequence[str]:
        del schema
        return (self.key,)

    def lift(self, rows: pa.Table) -> pa.Table:
        return rows.group_by(self.key).aggregate([([], "count_all")]).select([self.key, "count_all"])

    def combine(self, partials: Sequence[pa.Table]) -> pa.Table:
        summed = pa.concat_tables(partials).group_by(self.key).aggregate([("count_all", "sum")])
        return summed.rename_columns({"count_all_sum": "count_all"}).select([self.key, "count_all"])

    def lower(self, partial: pa.Table) -> pa.Table:
        return partial.rename_columns([self.key, "n"]).sort_by([("n", "descending"), (self.key, "ascending")])

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        return pa.schema([schema.field(self.key), ("n", pa.int64())])

    def describe(self) -> dict[str, Any]:
        return {"query": "counts", "key": self.key}


@dataclass(frozen=True)
class CountingBag(Bag):
    """A bag that notes its merges: n partials take n - 1 of them."""

    merges: list[int] = field(default_factory=list)

    def combine(self, partials: Sequence[pa.Table]) -> pa.Table:
        self.merges.append(len(partials) - 1)
        return super().combine(partials)


def micros_of(rows: pa.Table, column: str = "time") -> list[int | None]:
    """Return a timestamp column as whole microseconds."""
    values: list[int | None] = pc.cast(rows.column(column), pa.int64()).to_pylist()
    return values


def flipped(whole: bytes, bit: int) -> bytes:
    """Return bytes with one bit turned over."""
    return whole[: bit // 8] + bytes([whole[bit // 8] ^ (1 << bit % 8)]) + whole[bit // 8 + 1 :]


# A column of each kind that nests, or that a file must take care of.
NESTED = pa.table({
    "list": pa.array([[1, None], None, []], pa.list_(pa.int32())),
    "record": pa.array([{"a": "x", "b": [1.5]}, None, {"a": None, "b": None}],
                       pa.struct([("a", pa.string()), ("b", pa.list_(pa.float64()))])),
    "pairs": pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int64())),
    "money": pa.array([Decimal("1.10"), None, Decimal("-2.00")], pa.decimal128(20, 2)),
    "local": pa.array([datetime(2024, 3, 10, 2, 30), None, None], pa.timestamp("us")),  # noqa: DTZ001 - without zone
    "nothing": pa.nulls(3),
    "raw": pa.array([b"\x00", None, b""], pa.binary()),
})  # fmt: skip
