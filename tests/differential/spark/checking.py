"""A run on Spark held against the definition."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from tests.differential.accounts import gone_differ, parted, stream_differs
from tests.differential.case import Case, Continuous
from tests.differential.compare import updates_differ
from tests.differential.definition.late import last_end
from tests.differential.definition.windows import times, usable
from tests.differential.expected import Refused, Updates, expected
from tests.differential.spark import statics, streams
from tests.differential.spark.runs import Run
from tests.differential.ways.continuous import from_tables


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
    how = _stream_differs(run, streams.found(spark, run, folder))
    yield None if how is None else f"the stream: {how}"
    if run.case.chance % 2:
        yield from statics.differences(spark, run, folder)


def _stream_differs(run: Run, found: streams.Found) -> str | None:
    if isinstance(run.case.spec, Continuous):
        return gone_differ(run.case, found.rejected) or _updates_differ(run.case, found)
    return stream_differs(run.case, statics.in_windows(found.answers), found.rejected)


def _updates_differ(case: Case, found: streams.Found) -> str | None:
    """Return how updates differ from those of the rows that entered, up to the end of the last pane with one."""
    entered, _ = parted(case.rows, found.rejected)
    when = times(entered.take(pa.array(usable(entered, case.spec))))
    until = last_end(int(when.max()), case.windows) if len(when) else -(2**62)
    wanted = expected(case, entered)
    assert isinstance(wanted, Updates)
    return updates_differ(wanted.changes[wanted.changes[:, 0] < until], from_tables(case, [found.answers]))
