"""A stated change on executors that are processes: its workers are there before its first row is read, and only then."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pytest
from tests.checkout import PYTHONPATH, ROOT
from tests.runtime.many.stated_driver import MOST, PATIENCE, PLAN, STATED, rows_sent
from tests.runtime.streams import answers, parquet_rows

from skypane.runtime import local

Driven: TypeAlias = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def driven(tmp_path: Path) -> Iterator[Driven]:
    """Run the driver in `tmp_path`, and return its batches; all its processes end with the test."""
    running: list[subprocess.Popen[str]] = []

    def run(*arguments: str) -> list[dict[str, Any]]:
        driver = subprocess.Popen(
            [sys.executable, "-m", "tests.runtime.many.stated_driver", str(tmp_path), *arguments],
            cwd=ROOT, env=os.environ | {"PYTHONPATH": PYTHONPATH}, start_new_session=True, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        running.append(driver)
        out, err = driver.communicate(timeout=2 * PATIENCE)
        assert driver.returncode == 0, err[-3_000:]
        return [json.loads(line) for line in out.splitlines() if line.startswith("{")]

    yield run
    for driver in running:
        with suppress(ProcessLookupError):
            os.killpg(driver.pid, signal.SIGKILL)


def check_answers(folder: Path) -> None:
    """Hold the rows of the output against those of the definition, as multisets."""
    wanted = answers(PLAN, [rows_sent(folder), local.Drain()])
    got = parquet_rows(folder / "out").select(wanted.schema.names)
    assert _counted(got) == _counted(wanted)


def _counted(rows: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(zip(*rows.to_pydict().values(), strict=True))


@pytest.mark.slow
def test_workers_of_a_stated_change_have_tasks_before_its_instant_and_before_its_first_row_is_read(
    tmp_path: Path, driven: Driven
):
    batches = driven("stated")
    before = [batch for batch in batches if not batch["opened"]]
    assert (before[-1]["workers"], before[-1]["tasks"]) == (MOST, MOST)
    first = next(number for number, batch in enumerate(batches) if batch["changed"])
    assert first >= len(before)
    assert all(batch["workers"] == MOST for batch in batches[len(before) - 1 : first + 1])
    assert any(f"{STATED} at " in reason for batch in before for reason in batch["because"])
    check_answers(tmp_path)


@pytest.mark.slow
def test_executors_of_a_stated_change_are_there_before_its_instant(tmp_path: Path, driven: Driven):
    batches = driven("stated", "follow")
    before = [batch["executors"] for batch in batches if not batch["opened"]]
    assert 1 in before
    assert before[-1] == MOST
    check_answers(tmp_path)


@pytest.mark.night
def test_without_a_statement_the_first_row_of_a_change_meets_one_worker(tmp_path: Path, driven: Driven):
    batches = driven()
    first = next(number for number, batch in enumerate(batches) if batch["changed"])
    assert (batches[first]["workers"], batches[first]["tasks"]) == (1, 1)
    check_answers(tmp_path)
