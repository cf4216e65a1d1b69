"""The files that a DataFrame reads, also where its rows, or those of a DataFrame before it, are in Spark's cache.

A client of Spark Connect sees no plan: nothing but inputFiles() is known there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pyspark.sql import DataFrame

from skypane.runtime.spark.machine.session_kind import kind_of

_OF_FILES: Final = frozenset({"StreamingRelation", "LogicalRelation", "HiveTableRelation"})
"""Classes of the leaves of plans that may read files."""


def files_of(rows: DataFrame) -> set[str]:
    """Return the files that `rows` reads, as URIs with escapes.

    inputFiles() leaves out those of rows that are in Spark's cache, because it takes them from the plan that reads the
    cache; the plan before that one still has the relations of files.
    """
    files, plan = set(rows.inputFiles()), kind_of(rows.sparkSession).plan_of(rows)
    if plan is not None:
        files.update(_files_of_relations(plan))
    return files


def names_files(rows: DataFrame) -> bool:
    """Return whether input_file_name() returns the file of each row of a stream: Spark refuses it where files are joined."""
    plan = kind_of(rows.sparkSession).plan_of(rows)
    return plan is not None and _joined_files(plan) <= 1


def _joined_files(plan: Any) -> int:
    """Return the number of sources of files of a plan, of which a union counts as one: it reads one at a time."""
    if plan.getClass().getSimpleName() in _OF_FILES:
        return 1
    children = plan.children()
    numbers = [_joined_files(children.apply(number)) for number in range(children.size())]
    return max(numbers, default=0) if plan.nodeName() == "Union" else sum(numbers)


def _files_of_relations(plan: Any) -> Iterator[str]:
    leaves = plan.collectLeaves()
    for leaf in (leaves.apply(number) for number in range(leaves.size())):
        if leaf.getClass().getSimpleName() == "LogicalRelation":
            relation = leaf.relation()
            if relation.getClass().getSimpleName() == "HadoopFsRelation":
                yield from relation.inputFiles()
