"""A run on Spark held against the definition."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from tests.differential.case import ID, Case
from tests.differential.compare import difference, updates_differ
from tests.differential.definition.windows import times, usable
from tests.differential.expected import Refused, Updates, expected
from tests.differential.spark import statics, streams
from tests.differential.spark.late import last_end, late
from tests.differential.spark.runs import Run
from tests.differential.ways.continuous import from_tables

LATE, FUTURE = "late", "future"


def failure(spark: SparkSession, run: Run) -> str | None:
    """Return how what Spark answers differs from the definition, in the first way that does; None if none does."""
    if isinstance(expected(run.case), Refused):
        return None
    with tempfile.TemporaryDirectory(prefix="skypane-case-") as folder:
        for how in _differences(spark, run, Path(folder)):
            if how is not None:
                return how
    return None


def _differences(spark: SparkSession, run: Run, folder: Path) -> Iterator[str | None]:
    yield _stream_differs(run, streams.found(spark, run, folder))
    if run.case.chance % 2:
        yield from statics.differences(spark, run, folder)


def _stream_differs(run: Run, found: streams.Found) -> str | None:
    case = run.case
    reasons = _reasons(found.rejected)
    unusable = _ids(case, np.setdiff1d(np.arange(case.rows.num_rows), usable(case.rows, case.asked)))
    if (put_aside := _of(reasons, None)) != unusable:
        return f"the stream: put aside are {_more(put_aside, unusable)}"
    believed = run.believed
    gone = late(believed)
    if (dropped := _of(reasons, LATE)) != (wanted := _ids(believed, gone)):
        return f"the stream: late are {_more(dropped, wanted)}"
    if stray := set(_of(reasons, FUTURE)) - run.planted:
        return f"the stream: given up are {sorted(stray)}, which are not far in the future"
    entered = believed.rows.take(pa.array(np.setdiff1d(np.arange(believed.rows.num_rows), gone)))
    how = _answers_differ(case, entered, found.answers)
    return None if how is None else f"the stream: {how}"


def _answers_differ(case: Case, rows: pa.Table, answers: pa.Table) -> str | None:
    wanted = expected(case, rows)
    if not isinstance(wanted, Updates):
        return difference(case, wanted, statics.in_windows(answers))
    when = times(rows.take(pa.array(usable(rows, case.asked))))
    until = last_end(int(when.max()), case.windows) if len(when) else -(2**62)
    return updates_differ(wanted.told[wanted.told[:, 0] < until], from_tables(case, [answers]))


def _reasons(rejected: pa.Table) -> Counter[tuple[int, str]]:
    return Counter(zip(rejected.column(ID).to_pylist(), rejected.column("reason").to_pylist(), strict=True))


def _of(reasons: Counter[tuple[int, str]], wanted: str | None) -> Counter[int]:
    """Return the ids that were rejected for a reason; None: for what they are."""
    chosen: Counter[int] = Counter()
    for (one, reason), count in reasons.items():
        if reason == wanted or (wanted is None and reason not in (LATE, FUTURE)):
            chosen[one] += count
    return chosen


def _ids(case: Case, which: object) -> Counter[int]:
    return Counter(case.rows.column(ID).take(pa.array(which, pa.int64())).to_pylist())


def _more(found: Counter[int], wanted: Counter[int]) -> str:
    return f"{sorted((found - wanted).elements())[:5]} too many, {sorted((wanted - found).elements())[:5]} missing"
