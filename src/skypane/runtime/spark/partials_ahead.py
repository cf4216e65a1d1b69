"""Partials that are computed before their answers, in a session that sends rows to Python in the fastest way.

Since 4.1 Spark adds up the bytes of a batch of rows after each row, unless a setting of the session says otherwise
(arrow_batches.py). A batch query has no session of its own, and its second stage, which receives partials, needs the
bound. So a query that runs at once, as one with `output=` does, has its first stage run in a copy of the session, and
its partials, which are few beside the rows, stay in Spark's memory or on its disk. If an executor were lost with them
the query would fail, so this is done where workers are threads of one process.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame

from skypane.runtime.spark.arrow_batches import unmeasured
from skypane.runtime.spark.batch import LastStage
from skypane.runtime.spark.machine.executors import workers_are_threads
from skypane.runtime.spark.machine.java_errors import Py4JError, Py4JJavaError
from skypane.runtime.spark.machine.session_kind import SessionKind, kind_of

_NO_SUCH_NAME: Final = (Py4JError, TypeError)
"""Errors of calls into Java for what a version of Spark does not have: TypeError if a class does not exist."""


def partials_ahead(stage: LastStage) -> DataFrame:
    """Return the partials of a stage, which are computed already if their rows are sent faster so.

    Raises what Spark raises for the rows.
    """
    spark = stage.partials.sparkSession
    settings = {} if stage.lifted is None else unmeasured(stage.lifted)
    if not settings or not workers_are_threads(lambda name: spark.conf.get(name, None)):
        return stage.partials
    kind = kind_of(spark)
    first = _copied(kind, stage.partials, settings)
    return stage.partials if first is None else _copied(kind, first.localCheckpoint(), {}) or stage.partials


def _copied(kind: SessionKind, rows: DataFrame, settings: dict[str, str]) -> DataFrame | None:
    """Return the rows in a copy of their session with these settings; None if this Spark cannot do so."""
    try:
        return kind.with_settings(rows, settings)
    except Py4JJavaError:
        raise
    except _NO_SUCH_NAME:
        return None
