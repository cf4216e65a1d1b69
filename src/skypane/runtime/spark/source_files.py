"""The files that a DataFrame reads, also where its rows, or those of a DataFrame before it, are in Spark's cache."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame

from skypane.runtime.spark.machine.session_kind import kind_of


def files_of(rows: DataFrame) -> set[str]:
    """Return the files that `rows` reads, as URIs with escapes.

    inputFiles() leaves out those of rows that are in Spark's cache, because it takes them from the plan that reads the
    cache; the plan before that one still has the relations of files.
    """
    files, plan = set(rows.inputFiles()), kind_of(rows.sparkSession).plan_of(rows)
    if plan is not None:
        files.update(_files_of_relations(plan))
    return files


def _files_of_relations(plan: Any) -> Iterator[str]:
    leaves = plan.collectLeaves()
    for leaf in (leaves.apply(number) for number in range(leaves.size())):
        if leaf.getClass().getSimpleName() == "LogicalRelation":
            relation = leaf.relation()
            if relation.getClass().getSimpleName() == "HadoopFsRelation":
                yield from relation.inputFiles()
