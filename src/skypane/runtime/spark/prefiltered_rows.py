"""Rows that a prefilter lets pass, each task's with a proof of the points by which the others were dropped.

    rows -- in as many tasks as run at once -- first 8,192 -- one task: chooses points -- broadcast
    rows -- left outer join with the points that dominate a row -- rows without such a point -- Python

Spark runs the join as a nested loop over a few points inside its generated code, on its own values: nothing is converted
for a row that is dropped. Points and rows are read by one query of Spark, each time that it runs, so a DataFrame stays
lazy and a changed table has new points. Still these are two readings, and operators/witnessed_points.py says what has to be
checked: the points of each task have witnesses. So the points have to arrive with the rows that they have let pass, not
with others: the first row of a task is never dropped, but joined with the first point instead, which has the *proof* in
a column: all points, as bytes. A task without rows has dropped none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

from skypane.naming import backticked
from skypane.operators.query import Query
from skypane.operators.witnessed_points import Prefilter, prefilter_of
from skypane.preference.criteria import Around, Component, Criterion, High, Target
from skypane.runtime.spark.ignored_collations import collation_of
from skypane.runtime.spark.machine.session import parallelism
from skypane.runtime.spark.machine.worker_memory import keep_loaded
from skypane.runtime.spark.spark_schema import from_spark
from skypane.runtime.table_batching import as_tables, decoded, encoded
from skypane.types import BadInputError
from skypane.wording import counted

Stage: TypeAlias = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]

SAMPLE: Final = 8192
"""Rows of the sample. Twice as many drop a few rows in a hundred more, and each task of the sample reads as many."""
PARTIAL, PROOF = "partial", "proof"

_FIRST_ROW: Final = "(monotonically_increasing_id() & 8589934591) = 0"
"""Whether a row is the first of its task: the lower 33 bits of the function are the number of the row in the task."""


def rules_for(query: Query, schema: pa.Schema, rows: DataFrame) -> Prefilter | None:
    """Return the rules by which rows of `schema` may be dropped; None if none may be.

    Texts of a collation may be equal to Spark and different to a query, which compares their bytes; then none may be.
    """
    rules = prefilter_of(query, schema)
    if rules is None or any(collation_of(rows.schema[name].dataType) for name in rules.groups):
        return None
    return rules


def prefiltered(rows: DataFrame, checked: DataFrame, rules: Prefilter) -> DataFrame:
    """Return the rows of `checked` that no point dominates, with the proof as the last column: null in most rows.

    checked   `rows`, in which a null or NaN criterion may fail the query; the sample is read from `rows` themselves
    """
    names = _Names.beside(rows, rules)
    marked = checked.withColumn(names.first, sf.expr(_FIRST_ROW))
    points = _points(rows, rules, names).hint("broadcast")
    joined = marked.join(points, sf.expr(_joined(rules, names)), "left")
    kept = joined.where(f"{backticked(names.first)} OR {backticked(names.place)} IS NULL")
    return kept.select(*map(backticked, (*rows.columns, names.proof)))


@dataclass(frozen=True, slots=True)
class _Names:
    """Names of the columns that are added, longer than those of the rows and hence unique.

    points   those of the compared columns, of a point
    """

    points: tuple[str, ...]
    place: str
    first: str
    proof: str

    @classmethod
    def beside(cls, rows: DataFrame, rules: Prefilter) -> _Names:
        longest = max(rows.columns, key=len)
        points = tuple(f"{longest}_{number}" for number in range(len(rules.columns)))
        return cls(points, f"{longest}_place", f"{longest}_first", f"{longest}_proof")

    def of(self, rules: Prefilter, name: str) -> tuple[str, str]:
        """Return the names of a compared column, of a point and of a row, as in SQL."""
        return backticked(self.points[rules.columns.index(name)]), backticked(name)


def _points(rows: DataFrame, rules: Prefilter, names: _Names) -> DataFrame:
    kinds = (rows.schema[name].dataType for name in rules.columns)
    fields = [StructField(name, kind) for name, kind in zip(names.points, kinds, strict=True)]
    schema = StructType([*fields, StructField(names.place, IntegerType()), StructField(names.proof, BinaryType())])
    columns = map(backticked, dict.fromkeys((*rules.columns, *rules.required)))
    # Each task reads and sends as many rows as the limit: of a thousand small partitions these could be all rows.
    sample = rows.select(*columns).coalesce(parallelism(rows.sparkSession)).limit(SAMPLE)
    # One task, also where Spark leaves the limit out because there are fewer rows: each task chooses points.
    sample = sample.coalesce(1)
    return sample.mapInArrow(_Choose(rules, tuple(schema.names)), schema)


def _joined(rules: Prefilter, names: _Names) -> str:
    """Return the condition under which a row is joined with a point: it is dominated, or it is the first of its task."""
    compared = [
        _as_good(component, rules, names, strictly=number == rules.lead) for number, component in enumerate(rules.level)
    ]
    grouped = ["{} <=> {}".format(*names.of(rules, name)) for name in rules.groups]
    # A null or NaN there has to fail the query, dominated or not, and it does so where it is read.
    read = [f"{backticked(name)} IS NOT NULL" for name in rules.unread]
    first = backticked(names.first)
    dominated = " AND ".join([f"NOT {first}", *compared, *grouped, *read])
    return f"({dominated}) OR ({first} AND {backticked(names.place)} = 0)"


def _as_good(component: Component, rules: Prefilter, names: _Names, *, strictly: bool) -> str:
    """Return the condition that a point is at least as good as a row on a component, or strictly better."""
    criterion, others = component[0], component[1:]
    point, row = (_ranked(criterion, name) for name in names.of(rules, criterion.column))
    sign = ">" if isinstance(criterion, High) else "<"
    if others:
        rest = _as_good(others, rules, names, strictly=strictly)
        return f"({point} {sign} {row} OR ({point} = {row} AND {rest}))"
    return f"{point} {sign if strictly else sign + '='} {row}"


def _ranked(criterion: Criterion, name: str) -> str:
    """Return the value of which less, or with High more, is better; the distance is computed as in preference/around.py."""
    if not isinstance(criterion, Around):
        return name
    value = f"CAST({name} AS DOUBLE)"
    return f"greatest({_double(criterion.lo)} - {value}, {value} - {_double(criterion.hi)}, 0D)"


def _double(target: Target) -> str:
    assert isinstance(target, int | float | Decimal)  # noqa: S101 - prefilter_of() returns no rules for other targets
    return f"CAST('{float(target)!r}' AS DOUBLE)"


@dataclass(frozen=True, slots=True)
class _Choose:
    """Chooses points of the rows of one task, which are the sample; yields none if they would drop few rows."""

    rules: Prefilter
    names: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tables = list(as_tables(from_spark(batches)))
        points = self.rules.choose(pa.concat_tables(tables)).combine_chunks() if tables else None
        if points is not None and points.num_rows:
            proofs = [encoded(points).to_pybytes(), *[None] * (points.num_rows - 1)]
            added = pa.array(range(points.num_rows), pa.int32()), pa.array(proofs, pa.binary())
            yield pa.RecordBatch.from_arrays([*points.to_batches()[0].columns, *added], names=list(self.names))
        keep_loaded(_Choose)


@dataclass(frozen=True, slots=True)
class LiftProven:
    """A stage that lifts rows, and whose rows are sent with the proof that came with its own."""

    lift: Stage

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = _Unproven(batches)
        for lifted in self.lift(rows):
            yield pa.RecordBatch.from_arrays(
                [*lifted.columns, pa.array([rows.proof] * lifted.num_rows, pa.binary())], names=[PARTIAL, PROOF]
            )


class _Unproven:
    """Batches of rows without their last column, and the proof in it."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._batches = batches
        self.proof: bytes | None = None

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self._batches:
            *columns, proofs = batch.columns
            if proofs.null_count < len(proofs):
                self.proof = proofs.drop_null()[0].as_py()
            schema = pa.schema(list(batch.schema)[:-1], batch.schema.metadata)
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


def check_proof(rules: Prefilter, proof: bytes, skyline: pa.Table) -> None:
    """Raise BadInputError if points of a proof have no witness in the skyline of the rows that were kept."""
    points = decoded(pa.py_buffer(proof))
    if missing := rules.without_witness(points, skyline):
        raise BadInputError(
            f"the rows have changed while the query read them: it left out rows that are worse than others, and "
            f"{counted(missing, 'rows')} of those others ({', '.join(rules.columns)}) were gone when it read them "
            f"again, so that rows of the answer may be missing; run it again while nothing writes the rows, or read "
            f"them once with rows.localCheckpoint()"
        )
