"""The current answers of a query that amends: of each window the last version."""

from __future__ import annotations

import os

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

from skypane.locations import Location
from skypane.operators.window_query import ACTION, EARLY, EMPTY, REMOVED, VERSION, WINDOW_START
from skypane.types import ConfigError

_RANK = "skypane_rank_of_version"


def read_answers(spark: SparkSession, path: str | os.PathLike[str]) -> DataFrame:
    """Return the current answers in a parquet folder that stream() writes: of each window the rows of its last version.

    A folder of answers without versions is read as it is. In the column `early` a job with early= marks rows of windows
    that have not ended. For other formats and tables see current_answers().
    """
    # Files from before the query amended answers have no versions: the first file's schema may be theirs.
    return current_answers(spark.read.option("mergeSchema", value=True).parquet(Location.of(path, "path").spark))


def current_answers(answers: DataFrame) -> DataFrame:
    """Return the rows of the last version of each window, without the column `empty`.

    answers   a static DataFrame of all versions, as Amend describes them; rows without a version count as version 0

    Changes are added up, and their columns `version` and `action` left out; this needs rows without maps.
    """
    if WINDOW_START not in answers.columns:
        raise ConfigError(f"these are not answers of windows: there is no column {WINDOW_START!r}")
    if EARLY in answers.columns:  # rows from before the query answered early have no value there
        answers = answers.withColumn(EARLY, sf.coalesce(EARLY, sf.lit(False)))  # noqa: FBT003
    if {VERSION, ACTION} <= set(answers.columns):
        # Rows from before the query amended answers have no action.
        goes = sf.coalesce(sf.col(ACTION) == REMOVED, sf.lit(False))  # noqa: FBT003
        came, gone = (answers.where(which).drop(VERSION, ACTION) for which in (~goes, goes))
        return came.exceptAll(gone)
    if VERSION not in answers.columns or EMPTY not in answers.columns:
        return answers
    versions = answers.withColumn(VERSION, sf.coalesce(VERSION, sf.lit(0)))
    newest_first = Window.partitionBy(WINDOW_START).orderBy(sf.desc(VERSION))
    ranked = versions.withColumn(_RANK, sf.dense_rank().over(newest_first)).where(f"{_RANK} = 1")
    return ranked.where(~sf.coalesce(EMPTY, sf.lit(False))).drop(_RANK, EMPTY)  # noqa: FBT003
