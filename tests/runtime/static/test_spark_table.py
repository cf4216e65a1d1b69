"""A table of Spark's catalog as output; test_thin_client.py has one of Delta, where a batch that comes again is skipped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pyspark.sql import SparkSession
from tests.runtime.driver import Task, job_of
from tests.runtime.rows_of_batches import SCHEMA, numbers, of
from tests.runtime.sinks.test_table_streams import multiset
from tests.runtime.streams import answers, late_rows, write_batches
from tests.runtime.table_stream_driver import PLAN, finish_at_once

import skypane as sp
from skypane.runtime import local
from skypane.runtime.spark.sinks.folder_owner import QueryStart
from skypane.types import CheckpointError, ConfigError

pytestmark = pytest.mark.spark


@pytest.fixture
def table(spark: SparkSession) -> Iterator[str]:
    name = f"answers_{uuid4().hex[:8]}"
    yield name
    spark.sql(f"DROP TABLE IF EXISTS {name}")


def started(sink: sp.Table, **claim: Any) -> sp.Table:
    sink.check(SCHEMA)
    sink.open(QueryStart("q", **claim))
    return sink


def numbers_in(spark: SparkSession, table: str) -> list[int]:
    return sorted(row.n for row in spark.table(table).collect())


def test_a_table_has_the_answers_of_a_stream(spark: SparkSession, tmp_path: Path, table: str):
    tables = late_rows(1, batches=4)
    write_batches(tmp_path / "in", tables)
    job = job_of(spark, Task(str(tmp_path), late=False), PLAN.query, output=sp.Table(table))
    finish_at_once([job], drain=True)
    assert multiset(spark.table(table).toArrow()) == multiset(answers(PLAN, [*tables, local.Drain()]))


def test_rows_are_added_by_the_names_of_columns(spark: SparkSession, table: str):
    spark.createDataFrame([], "n bigint, city string, window_end timestamp, window_start timestamp").write.saveAsTable(table)  # fmt: skip
    sink = started(sp.Table(table))
    sink.write(spark, numbers(1, 2), 0)
    sink.write(spark, numbers(), 1)
    sink.write(spark, of(SCHEMA, (7, "Bern", 3)), 2)
    assert numbers_in(spark, table) == [1, 2, 3]
    assert {row.city for row in spark.table(table).collect()} == {"Oslo", "Bern"}


def test_a_batch_that_comes_again_is_added_again(spark: SparkSession, table: str):
    """As docs/sinks.md says of tables that are not Delta's."""
    sink = started(sp.Table(table, using="orc"))
    for _ in range(2):
        sink.write(spark, numbers(1), 0)
    assert numbers_in(spark, table) == [1, 1]
    assert spark.sql(f"DESCRIBE EXTENDED {table}").where("col_name = 'Provider'").first().data_type == "orc"  # type: ignore[union-attr]


def test_a_driver_that_was_fenced_adds_nothing(spark: SparkSession, table: str):
    def fenced() -> None:
        raise CheckpointError("another driver has taken over")

    sink = sp.Table(table)
    sink.open(QueryStart("q", check=fenced))
    with pytest.raises(CheckpointError, match="taken over"):
        sink.write(spark, numbers(1), 0)
    assert not spark.catalog.tableExists(table)


def test_a_front_and_a_second_role_are_refused(spark: SparkSession):
    complaint = r"a front replaces those that are there: use sp\.Delta, sp\.Iceberg or sp\.Jdbc"
    with pytest.raises(ConfigError, match=complaint):
        started(sp.Table("shop.answers"), role="front")
    with pytest.raises(ConfigError, match="one sink is for output and for late"):
        started(started(sp.Table("answers")), role="late")
    with pytest.raises(CheckpointError, match="table answers: the sink has not been opened"):
        sp.Table("answers").write(spark, numbers(1), 0)


@pytest.mark.parametrize("name", ["", "shop.", ".answers", "a..b"])
def test_a_name_that_is_none_is_refused(name: str):
    with pytest.raises(ConfigError, match=r"name must be that of a table, as in shop\.answers"):
        sp.Table(name)
