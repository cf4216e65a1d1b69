"""Facts of the rows of a static DataFrame that Spark's plan shows: whether they can be read twice, and their number.

Rows are at rest if the plan reads rows in memory, a range, or local files, and only selects, computes and filters after
that: by expressions that are deterministic, without functions of users. A shuffle, a join or a sort would be done twice
for a second reading, and which rows a limit or dropDuplicates keeps may differ the second time. Rows that will be cached
when they are first read are not in memory yet: their number and what they cost are not known.

Only a classic session shows its plan. Nothing depends on it but time: if a version of Spark names its parts in another
way, nothing is known of the rows.
"""

from __future__ import annotations

from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from skypane.control.static_way import RowsAtRest
from skypane.runtime.spark.machine.java_errors import Py4JError
from skypane.runtime.spark.machine.session_kind import kind_of

_FILTER: Final = "Filter"
_PASSING: Final = frozenset({_FILTER, "Project", "SubqueryAlias", "View", "ResolvedHint"})
_CACHED: Final = "InMemoryRelation"
_IN_MEMORY: Final = frozenset({"LocalRelation", "Range", _CACHED})
_FUNCTIONS: Final = ("PYTHON_UDF", "SCALA_UDF", "PLAN_EXPRESSION")
"""Spark's names of expressions that may take long, or be non-deterministic without saying so: the last are subqueries."""
_ROW_BYTES: Final = 8
"""Bytes that Spark adds to those of the columns when it estimates the size of rows."""
_NO_SUCH_NAME: Final = (Py4JError, PySparkException, TypeError)
"""Errors of calls into Java: TypeError if a class does not exist, because Py4J then takes its name for a package."""


def rows_at_rest(rows: DataFrame) -> RowsAtRest | None:
    """Return what the plan shows of rows; None if they may not be read twice, or the plan is in a server."""
    try:
        plan = kind_of(rows.sparkSession).plan_to_run(rows)
        return None if plan is None or not _is_repeatable(plan, rows) else _found(plan)
    except _NO_SUCH_NAME:
        return None


def _is_repeatable(plan: Any, rows: DataFrame) -> bool:
    jvm: Any = rows.sparkSession._jvm  # noqa: SLF001 - PySpark has no name for it
    patterns = jvm.org.apache.spark.sql.catalyst.trees.TreePattern
    functions = any(plan.containsPattern(getattr(patterns, name)()) for name in _FUNCTIONS)
    return bool(plan.deterministic()) and not functions


def _found(plan: Any) -> RowsAtRest | None:
    filtered = False
    while (name := _name(plan)) in _PASSING:
        filtered |= name == _FILTER
        plan = plan.children().apply(0)
    if name in _IN_MEMORY and (name != _CACHED or plan.cacheBuilder().isCachedColumnBuffersLoaded()):
        return RowsAtRest(*_counted(plan), in_memory=True, filtered=filtered)
    if name == "LogicalRelation" and _is_local(plan.relation()):
        return RowsAtRest(*_counted(plan), in_memory=False, filtered=filtered)
    return None


def _name(part: Any) -> str:
    name: str = part.getClass().getSimpleName()
    return name


def _is_local(relation: Any) -> bool:
    """Return whether a relation reads files of this machine."""
    if _name(relation) != "HadoopFsRelation":
        return False
    paths = relation.location().rootPaths()
    return all(paths.apply(at).toUri().getScheme() == "file" for at in range(paths.size()))


def _counted(leaf: Any) -> tuple[int, int]:
    """Return the number of rows as Spark knows it, or as their size suggests, and this size in bytes."""
    known = leaf.stats()
    size = int(str(known.sizeInBytes()))  # Py4J returns an int, or an object if it does not know the type
    if known.rowCount().isDefined():
        return int(str(known.rowCount().get())), size
    return size // (_ROW_BYTES + int(leaf.schema().defaultSize())), size
