"""The answers of windows as a DataFrame: stays expanded, and of a query that amends the last version of each window."""

from __future__ import annotations

import os

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as sf
from pyspark.sql.types import TimestampType

from skypane.locations import Location
from skypane.operators.stay_columns import COUNT, END, FROM, STAY_COLUMNS, TO
from skypane.operators.window_query import ACTION, EARLY, EMPTY, REMOVED, VERSION, WINDOW_START
from skypane.types import ConfigError

_RANK = "skypane_rank_of_version"
_PLACE = "skypane_place_of_window"


def read_answers(spark: SparkSession, path: str | os.PathLike[str]) -> DataFrame:
    """Return the current answers in a parquet folder that stream() writes: of each window the rows of its last version.

    Stays are expanded. A folder of answers without versions is read as it is. In the column `early` a job with early=
    marks rows of windows that have not ended. For other formats and tables see current_answers().

    >>> job = sp.stream(
    ...     arriving, "price MIN", time="ts", window="1 hour", checkpoint="state", output="best", late=sp.Amend("1 day")
    ... )
    >>> handle = job.start(availableNow=True)
    >>> handle.await_termination()
    True
    >>> metrics = handle.drain()
    >>> sp.read_answers(spark, "best").select("window_start", "price").orderBy("window_start").show()
    +-------------------+-----+
    |       window_start|price|
    +-------------------+-----+
    |2026-01-01 10:00:00| 70.0|
    |2026-01-01 11:00:00| 60.0|
    +-------------------+-----+
    """
    # Files from before the query amended answers have no versions: the first file's schema may be theirs.
    merged = spark.read.option("mergeSchema", value=True)
    return current_answers(merged.parquet(Location.of(path, "path").spark_pattern))


def current_answers(answers: DataFrame) -> DataFrame:
    """Return the rows of the last version of each window, without the column `empty`; stays are expanded to windows.

    answers   a static DataFrame of all versions, as Amend describes them; rows without a version count as version 0. Or one
              of stays, as stream(..., answers="stays") writes them, and possibly rows of windows among them, which keep none
              of the columns of stays

    Changes are added up, and their columns `version` and `action` left out; this needs rows without maps.

    >>> versions = spark.sql('''
    ...     SELECT timestamp'2026-01-01 10:00' AS window_start, timestamp'2026-01-01 11:00' AS window_end,
    ...            version, false AS empty, price
    ...     FROM VALUES (0, 90.0D), (1, 75.0D) AS (version, price)
    ... ''')
    >>> sp.current_answers(versions).select("window_start", "version", "price").show()
    +-------------------+-------+-----+
    |       window_start|version|price|
    +-------------------+-------+-----+
    |2026-01-01 10:00:00|      1| 75.0|
    +-------------------+-------+-----+
    """
    if set(STAY_COLUMNS) <= set(answers.columns):
        answers = _expanded(answers)
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


def _expanded(answers: DataFrame) -> DataFrame:
    """Return the answers with a row for each window of each stay; rows of windows stay as they are.

    Bounds are computed in microseconds: a day of Spark's intervals may have 23 hours, in the zone of the session.
    """
    is_stay = sf.col(FROM).isNotNull()
    if WINDOW_START in answers.columns:  # rows of windows may have columns of these names, too
        is_stay &= sf.col(WINDOW_START).isNull()
    stays, whole = answers.where(is_stay), answers.where(~is_stay)
    zoned = isinstance(answers.schema[FROM].dataType, TimestampType)
    places = sf.explode(sf.sequence(sf.lit(0), sf.col(COUNT) - 1)).alias(_PLACE)
    start, end = (_of_zone if zoned else _of_no_zone)()
    others = [name for name in answers.columns if name not in {*STAY_COLUMNS, WINDOW_START}]
    placed = stays.select("*", places).select(start.alias(WINDOW_START), end.alias(END), *others)
    return placed.unionByName(whole.select(WINDOW_START, END, *others)) if WINDOW_START in answers.columns else placed


def _of_zone() -> tuple[Column, Column]:
    """Return start and end of the window at a place of a stay, as instants."""
    first, last, end = (sf.unix_micros(name) for name in (FROM, TO, END))
    start = first + sf.call_function("div", last - first, sf.greatest(sf.col(COUNT) - 1, sf.lit(1))) * sf.col(_PLACE)
    return sf.timestamp_micros(start), sf.timestamp_micros(start + end - last)


def _of_no_zone() -> tuple[Column, Column]:
    """Return the same of timestamps without time zone, whose days all have 24 hours."""
    slide = (sf.col(TO) - sf.col(FROM)) / sf.greatest(sf.col(COUNT) - 1, sf.lit(1))
    start = sf.col(FROM) + slide * sf.col(_PLACE)
    return start, start + (sf.col(END) - sf.col(TO))
