"""As many readers as keep a bound on latency: the planner with a clock of its own, and real files."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType
from tests.runtime.many.read_batches import grow

from skypane.control.admission import MetaData
from skypane.control.admission.readers import Readers
from skypane.runtime.spark.sources.many.discovery import listed
from skypane.runtime.spark.sources.many.inputs_api import readers_text
from skypane.runtime.spark.sources.many.offsets import Offsets
from skypane.runtime.spark.sources.many.planning import Planner
from skypane.runtime.spark.sources.many.source import ManySource
from skypane.types import ConfigError

NOTHING = MetaData()
COST = 1e-3
"""Seconds that a reader takes for a row."""


def run(
    folder: Path, policy: Readers, batches: list[int], meta: MetaData = NOTHING, epoch: float = 0.0, **options: Any
) -> list[int]:
    """Return the tasks of batches, a second apart at least, before each of which so many lines come to each of 8 files.

    The first begins at `epoch`, in seconds since the epoch.
    """
    entries = [{"path": f"{folder}/*.csv", "meta": meta}]
    plan, place, now, tasks = Planner(lambda: listed(entries), policy, **options), Offsets({}), 0.0, []
    for lines in batches:
        grow(folder, **{f"s{at}": lines for at in range(8)})
        end = plan.latest(place, 4_000)
        plan.seen(now, epoch + now)
        assigned = plan.assigned(place, end)
        plan.begun(now)
        tasks.append(len(assigned))
        rows = sum((end.at[name] - place.at.get(name, 0)) // 8 for name in end.at)
        took = rows * COST / len(assigned)
        plan.finished(now + took)  # Spark requests more at once
        place, now = end, now + max(1.0, took)
    assert plan.sizing is not None
    return tasks


def test_readers_grow_with_what_comes_and_waits_and_are_given_back_after_it(tmp_path):
    policy = Readers(max_readers=4, latency="2 seconds", idle_timeout=2)
    tasks = run(tmp_path, policy, [20] * 8 + [400] * 4 + [20] * 20)
    assert tasks[0] == 4  # nothing is known yet
    assert tasks[7] < 4
    assert max(tasks[8:14]) == 4
    assert tasks[-1] == 1


def test_readers_are_there_before_a_change_that_an_input_states_and_without_it_after(tmp_path):
    """160 rows/s of 1 ms in batches of a second take one reader, ten times as many two; the change is at batch 20, ten ahead."""
    opens = datetime(2026, 3, 2, 9, 30, tzinfo=UTC).timestamp()
    meta = MetaData(changes=["x10 at 09:30 UTC", "x1 at 16:00 UTC"])
    policy = Readers(max_readers=4, latency="2 seconds", idle_timeout=1)
    batches = [20] * 20 + [200] * 6
    for folder, stated in (("with", meta), ("without", NOTHING)):
        (tmp_path / folder).mkdir()
        tasks = run(tmp_path / folder, policy, batches, stated, opens - 20, lead="10 seconds")
        early = [at for at, count in enumerate(tasks[8:20], 8) if count > 1]
        assert (early == list(range(10, 20))) is (folder == "with"), tasks
        assert (early == []) is (folder == "without"), tasks
        assert min(tasks[22:]) >= 2


def test_a_dry_run_leaves_the_readers_as_they_are(tmp_path):
    assert set(run(tmp_path, Readers(max_readers=4, idle_timeout=1, dry_run=True), [20] * 12)) == {4}


def test_readers_go_through_an_option(tmp_path):
    schema = StructType([StructField("n", LongType()), StructField("input", StringType())])
    given = {"inputs": json.dumps([str(tmp_path / "a.csv")])}
    policy = Readers(max_readers=8, latency="1 minute", headroom=0.2)
    reader = ManySource(given | {"readers": readers_text(policy)}).streamReader(schema)
    assert reader.planner.sizing.policy == policy  # type: ignore[attr-defined]
    message = "option readers of skypane-many must be a number, or a JSON object with the fields of Readers"
    with pytest.raises(ConfigError, match=message):
        ManySource(given | {"readers": '{"mst": 8}'}).streamReader(schema)
