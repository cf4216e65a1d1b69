"""A job file may take its rows from a workload, made as it runs."""

import pytest

from skypane.jobs import building
from skypane.jobs.reading import parse
from skypane.workloads import workload

JOB = """
name: made
mode: batch
source:
  format: skypane-replay
  options: {workload: poisson, parameters: '{"rate": 100, "d": 2, "rows": 500}'}
query: {kind: skyline, preference: "c0 MIN, c1 MIN"}
output: {format: console}
"""


@pytest.mark.slow
def test_a_workload_is_a_source(spark):
    rows = building.frame(parse(JOB), spark)
    assert rows.columns == ["time", "arrival", "source", "key", "c0", "c1"]
    made = workload("poisson", rate=100, d=2, rows=500).table()
    assert rows.toArrow().sort_by("time").equals(made.sort_by("time"))


def test_two_sessions_of_one_process_know_the_source(spark):
    for session in (spark, spark.newSession()):
        assert building.frame(parse(JOB), session).count() == 500
