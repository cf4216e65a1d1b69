"""kill -9 before, in and after file operations of the engine, without a Java: every row is answered for, every window once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from tests.chaos.scenarios import SCENARIOS
from tests.checkout import PYTHONPATH, ROOT
from tests.parameters import times

Survived: TypeAlias = Callable[[str, int, int], dict[str, Any]]


@pytest.fixture(scope="module")
def survived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Survived]:
    """Run campaigns, by scenario, kills and seed, as forks of one process; return what came of each."""
    last_words: Path = tmp_path_factory.mktemp("chaos") / "errors.txt"
    with (
        last_words.open("wb") as errors,
        subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.campaign"],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": PYTHONPATH, "NUMBA_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as parent,
    ):
        assert parent.stdin is not None
        assert parent.stdout is not None
        requests, outcomes = parent.stdin, parent.stdout

        def run(scenario: str, kills: int, seed: int) -> dict[str, Any]:
            print(scenario, kills, seed, sep="\t", file=requests, flush=True)
            came: dict[str, Any] = json.loads(outcomes.readline() or '{"wrong": "the process has ended"}')
            assert "wrong" not in came, f"{last_words.read_text()[-4_000:]}\n{came['wrong']}"
            return came

        yield run


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_stream_survives_kills(scenario: str, survived: Survived):
    came = survived(scenario, 12, 1)
    assert came["kills"] >= 12
    assert came["streams"] >= 1


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_stream_survives_many_kills(scenario: str, survived: Survived):
    came = survived(scenario, times(120), 2)
    assert came["kills"] >= times(120)
    assert came["taken over"] > 0 or not SCENARIOS[scenario].collides
