"""Streams on a real Spark, killed, frozen and starved: `make chaos` goes on where these stop."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.checkout import PYTHONPATH, ROOT
from tests.nature.scenarios import SCENARIOS
from tests.nature.tally import Tally
from tests.parameters import times


def survived(names: list[str], kills: int, seed: int, logs: Path) -> dict[str, Tally]:
    """Run a campaign in a process of its own."""
    chosen = [part for name in names for part in ("--scenario", name)]
    command = [
        sys.executable,
        "-m",
        "tests.nature",
        "--kills",
        str(kills),
        "--seed",
        str(seed),
        "--logs",
        str(logs),
        *chosen,
    ]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"PYTHONPATH": PYTHONPATH}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr[-4_000:]
    tallies = json.loads((logs / "tally.json").read_text())
    return {name: Tally.from_json(value) for name, value in tallies.items()}


@pytest.mark.slow
def test_a_stream_survives_kills(tmp_path: Path):
    tallies = survived(["folder"], 2, 1, tmp_path)["folder"]
    assert tallies.kills >= 2
    assert tallies.streams == 1
    assert tallies.batches > 0


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


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_each_kind_of_stream_survives_kills(name: str, tmp_path: Path, request: pytest.FixtureRequest):
    if SCENARIOS[name].broker:
        request.getfixturevalue("kafka")  # left out where Maven lacks it
    tallies = survived([name], times(10), 2, tmp_path)[name]
    assert tallies.kills >= times(10)
    assert tallies.streams >= 1, "a stream ends with its schedule, which may hold more kills than it was to have"
    assert tallies.batches > 0
