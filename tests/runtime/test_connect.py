"""Streams over Spark Connect, with a real server, against runtime/local.py, which defines what they must answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.runtime import continuous_streams
from tests.runtime.connect_driver import BATCHES, LOAD, SKYLINE, plan
from tests.runtime.connect_server import connect_server
from tests.runtime.streams import expected, parquet_rows, windows_of

from skypane.runtime import local

pytest.importorskip("grpc", reason="needs pip install 'skypane[connect]'")

# Slow: Spark waits ten seconds for Python beside the server to start, which is too short on a busy machine.
pytestmark = [pytest.mark.spark, pytest.mark.slow]

PATIENCE = 900
"""Seconds after which a scenario that has not ended fails."""

Found = Callable[[str], dict[str, Any]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with connect_server(tmp_path_factory.mktemp("connect")) as address:
        yield address


@pytest.fixture
def found(server: str, tmp_path: Path) -> Found:
    """Return a function that runs a scenario of connect_driver in a client of its own, and returns what it finds."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SPARK")}

    def run(scenario: str) -> dict[str, Any]:
        command = [sys.executable, "-m", "tests.runtime.connect_driver", server, scenario, str(tmp_path)]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
        answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return answer

    return run


def test_a_stream_continues_after_a_restart_and_a_drain_answers_the_rest(found: Found, tmp_path: Path):
    answer = found("restart")
    assert answer == {"batches": [[0, 1, 2], [3, 4, 5]], "drained": 6, "again": True, "rows": 360}
    wanted = expected(plan(SKYLINE), [*BATCHES, local.Drain()])
    assert windows_of(parquet_rows(tmp_path / "out")) == wanted


def test_a_handle_reads_and_requests_through_the_server(found: Found):
    answer = found("handled")
    assert answer["active"]
    assert answer["before"] == "PLQ 1, WLQ 1: as requested; no policy changes them (elastic=None)"
    assert answer["after"].startswith("PLQ 3, WLQ 2")
    assert answer["workers"] == {"plq": 3, "wlq": 2}
    assert answer["inputs"] == 0
    assert answer["front"].startswith("SkypaneError: this query answers windows and keeps no front")
    assert answer["scaled"] == "ConfigError: plq_workers must be a whole number of at least 1, got 0"
    assert "last batch: batch 2" in answer["shown"]
    assert (answer["ended"], answer["error"]) == (True, None)


def test_a_stop_lets_the_running_batch_end_and_the_next_start_continues(found: Found, tmp_path: Path):
    assert found("stopped") == {"ended": True, "error": None, "batches": list(range(len(BATCHES)))}
    assert windows_of(parquet_rows(tmp_path / "out")) == expected(plan(SKYLINE), BATCHES)


def test_a_process_beside_the_server_that_is_killed_loses_and_repeats_nothing(found: Found, tmp_path: Path):
    answer = found("killed")
    assert answer["error"].startswith("SkypaneError: the query has failed in Spark's part")
    assert answer["batches"] == [2, 3, 4, 5]
    assert windows_of(parquet_rows(tmp_path / "out")) == expected(plan(SKYLINE), BATCHES)


def test_an_error_beside_the_server_is_one_line_in_the_client(found: Found):
    answer = found("failures")
    assert answer["sink"] == "SkypaneError: the query has failed: ValueError: the table of batch 0 is locked"
    assert answer["status"] == "ValueError: the table of batch 0 is locked"
    assert answer["other query"].startswith("CheckpointError: the checkpoint")
    assert "belongs to another query" in answer["other query"]
    assert (answer["refused"] > 0, answer["same"]) == (True, 0)
    assert answer["memory"].startswith("ConfigError: output is Memory(), which over Spark Connect")
    assert answer["pickle"].startswith("ConfigError: the query cannot be sent to the Spark Connect server")


def test_a_continuous_skyline_and_aggregates_answer_as_without_connect(found: Found, tmp_path: Path):
    answer = found("continuous")
    updates = [update for step in continuous_streams.expected(BATCHES) for update in step]
    assert updates
    assert [tuple(update) for update in answer["updates"]] == updates
    assert answer["front"] == continuous_streams.front_of(updates)
    assert windows_of(parquet_rows(tmp_path / "out")) == expected(plan(LOAD), BATCHES)
