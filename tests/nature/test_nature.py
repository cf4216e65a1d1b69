"""Streams on a real Spark, killed, frozen and starved: `make chaos` goes on where these stop."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.checkout import PYTHONPATH, ROOT
from tests.nature.held_by import HELD_BY
from tests.nature.scenarios import SCENARIOS
from tests.nature.schedule import PLACE
from tests.nature.tally import Tally
from tests.parameters import times

WITH_BROKER = tuple(name for name, scenario in SCENARIOS.items() if scenario.broker)
ON_CLUSTER = tuple(name for name, scenario in SCENARIOS.items() if "cluster" in scenario.master)
ALONE = tuple(name for name in SCENARIOS if name not in WITH_BROKER + ON_CLUSTER)


def survived(names: tuple[str, ...], logs: Path, *options: object) -> Mapping[str, Tally]:
    """Run a campaign in a process of its own; hold it to having found nothing wrong, and killed something of each stream."""
    chosen = [part for name in names for part in ("--scenario", name)]
    command = [sys.executable, "-m", "tests.nature", "--logs", str(logs), *chosen, *map(str, options)]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"PYTHONPATH": PYTHONPATH}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr[-4_000:]
    tallies = {name: Tally.from_json(value) for name, value in json.loads((logs / "tally.json").read_text()).items()}
    assert {name for name, tally in tallies.items() if tally.streams and tally.batches and tally.kills} == {*names}
    return tallies


@pytest.mark.slow
def test_streams_survive_kills_at_each_place_and_in_drains(tmp_path: Path):
    """Each at three of nine places of a batch, and three of a drain; then other drivers take over from two that stand still."""
    tallies = survived(ALONE, tmp_path, "--places", times(3), "--seed", 2)
    assert all(tally.done[PLACE] >= times(3) + 3 for tally in tallies.values())
    assert all(tally.expected["taken over"] == 2 for tally in tallies.values())


@pytest.mark.slow
def test_streams_survive_kills_at_random_moments(tmp_path: Path):
    tallies = survived(ALONE, tmp_path, "--kills", times(30), "--each", times(2), "--seed", 3)
    assert sum(tally.kills for tally in tallies.values()) >= times(30)


@pytest.mark.slow
def test_streams_of_a_broker_and_a_receiver_survive_kills(tmp_path: Path, request: pytest.FixtureRequest):
    request.getfixturevalue("kafka")  # left out where Maven lacks it
    tallies = survived(WITH_BROKER, tmp_path, "--kills", times(12), "--each", times(6), "--seed", 4)
    assert sum(tally.kills for tally in tallies.values()) >= times(12)


@pytest.mark.slow
def test_streams_of_a_cluster_survive_kills_of_drivers_and_executors(tmp_path: Path):
    """Executors are processes of their own, which may outlive their driver for a while."""
    tallies = survived(ON_CLUSTER, tmp_path, "--kills", times(6), "--each", times(6), "--seed", 5)
    assert all(tally.kills >= times(6) for tally in tallies.values())


HUNG = """
import sys
from pathlib import Path
from tests.nature.driver import UP
from tests.nature.nursery import HungError, Nursery
from tests.nature.scenarios import LOCAL
from tests.nature.silence import Silence

nursery = Nursery(Path(sys.argv[1]), {})
driver = nursery.take(LOCAL)
try:
    assert driver.wait(lambda: None)[0] == UP
    driver.bear(Silence(driver.python), patience=-1)
except HungError as error:
    print(error)
finally:
    driver.end()
    nursery.close()
"""


@pytest.mark.slow
def test_a_hung_driver_is_named_with_the_stacks_of_its_threads(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-c", HUNG, str(tmp_path)], cwd=ROOT, env=os.environ | {"PYTHONPATH": PYTHONPATH}, capture_output=True, text=True, check=True
    )  # fmt: skip
    found = re.fullmatch(r"a driver has sent nothing for 0 s, in which .* for a core: (.*\.threads)\n", done.stdout)
    assert found is not None, done.stdout
    written = Path(found[1]).read_text()
    assert "in live" in written
    assert " in <module>" in written, "the main thread, which Python writes last"
    assert "JNI global refs" in written
    assert "is in state S, waits in" in written
    assert "bytes unread" in written


def test_each_kind_of_kill_is_tried_in_streams_that_there_are():
    named = {name for held in HELD_BY.values() for name in held.nature}
    assert named == {*SCENARIOS}
    assert all(held.nature or held.chaos for held in HELD_BY.values())
