from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from measure.admission import stated, stated_simulated
from measure.admission.acceptance import Scale, run, table
from measure.admission.verdict import verdict
from tests.reporting import made

from skypane.control.admission import MetaData

SMALL = Scale(topics=8, partitions=4, files=6, tcp=4, seconds=6.0, rate=1000.0, batch=500, kills=1)


@pytest.mark.slow
def test_inputs_of_three_kinds_are_read_once_by_two_tasks_over_a_kill_and_none_is_starved(tmp_path, kafka):
    """The short form of the run in the docs: joins, leaves, stalls, a burst, and a driver killed before Spark knows."""
    found, _ = run(tmp_path, kafka, SMALL)
    assert found.exact
    assert found.rows > 4_000
    assert found.tasks == 2
    assert found.starved <= 3
    assert found.inputs == SMALL.inputs
    assert float(np.median(found.excess)) <= 0.07
    assert float(np.quantile(found.beyond, 0.5)) <= 0.07
    assert "| tasks of a batch, at most | 2 | 2 |" in table(found, SMALL.kills)


def test_the_verdict_names_missing_duplicate_and_starved_inputs(tmp_path):
    """a is read in every batch; b waits from the first on and comes in the last, where a row is twice."""
    rows = [(0, "a", 0), (1, "a", 1), (2, "a", 2), (3, "b", 0), (3, "b", 0)]
    for batch in range(4):
        mine = [(name, n) for number, name, n in rows if number == batch]
        columns = {"input": [name for name, _ in mine], "n": [n for _, n in mine], "at": [0.0] * len(mine),
                   "task": [0] * len(mine), "planned": [10.0 + batch] * len(mine), "done": [11.0 + batch] * len(mine)}  # fmt: skip
        pq.write_table(pa.table(columns), tmp_path / f"{batch}.parquet")
    found = verdict(tmp_path, {"a": 4, "b": 1, "c": 2})
    assert (found.missing, found.twice, found.starved, found.tasks) == (3, 1, 3, 1)
    assert not found.exact
    assert found.waits.tolist() == [11.0, 12.0, 13.0, 14.0, 14.0]


def test_a_stated_rate_has_its_readers_before_its_rows_in_virtual_time():
    """Readers that start in half a minute: without the statement, no row of the first minute at x10 is in time."""
    stated, reacting, every = (
        stated_simulated.run(25.0, 30.0, meta, fixed=fixed)
        for meta, fixed in ((stated_simulated.STATED, None), (MetaData(), None), (MetaData(), 10))
    )
    seconds = [one.reader_seconds for one in (reacting, stated, every)]
    assert seconds == sorted(seconds), "the price of a statement is below that of all readers all the time"
    share, without = (
        float((one.waits[(one.came >= stated_simulated.STEP) & (one.came < stated_simulated.STEP + 60)] <= 5.0).mean())
        for one in (stated, reacting)
    )
    assert share > 0.9
    assert without < 0.1


def test_what_a_run_on_a_cluster_comes_to():
    """Batches of 2 s begin at 100, 102, ...; the change is at 106: three tasks from 104 on, three executors from 105 on."""
    seen = [
        made.batch(
            started_at=100.0 + 2 * at,
            seconds={"total": 1.0},
            rows=2 * tasks,
            task_rows=(2,) * tasks,
            workers={"plq": tasks},
        )
        for at, tasks in enumerate((4, 1, 3, 3))
    ]
    written = np.array([100.0] * 16 + [106.0, 106.0, 106.5, 106.5, 107.0, 107.0, 108.0, 109.0])
    one = stated.Way(
        100.0, 106.0, 110.0, seen, written, [(50.0, np.inf), (50.0, 103.0), (90.0, np.inf), (105.0, np.inf)]
    )
    assert (one.decided(), one.used(), one.granted()) == (-2.0, -2.0, -16.0)
    assert one.waits.tolist() == [1.0, 1.0, 0.5, 0.5, 0.0, 0.0, 2.0, 1.0], (
        "the last two were not read: they wait until the end"
    )
    assert one.worker_seconds == 2 * (4 + 1 + 3) + 4 * 3
    assert one.executor_seconds == 10 + 3 + 10 + 5
    assert [one.executors_at(at) for at in (102.0, 104.0, 106.0)] == [3, 2, 3]
