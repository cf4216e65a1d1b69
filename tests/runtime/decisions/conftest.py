"""Drivers of clusters, in processes of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.checkout import PYTHONPATH, ROOT


@pytest.fixture
def driven(tmp_path: Path) -> Iterator[Callable[..., dict[str, Any]]]:
    """Run a driver, a module of tests/runtime, in `tmp_path`, and return its report; all its processes end with the test."""
    running: list[subprocess.Popen[str]] = []

    def run(module: str, *arguments: object, timeout: float) -> dict[str, Any]:
        command = [sys.executable, "-m", f"tests.runtime.{module}", str(tmp_path), *map(str, arguments)]
        log = tmp_path / "driver.log"
        with log.open("w", encoding="utf-8") as errors:
            driver = subprocess.Popen(
                command, cwd=ROOT, env=os.environ | {"PYTHONPATH": PYTHONPATH}, start_new_session=True, text=True,
                stdout=subprocess.PIPE, stderr=errors,
            )  # fmt: skip
        running.append(driver)
        out, _ = driver.communicate(timeout=timeout)
        assert driver.returncode == 0, log.read_text(encoding="utf-8")[-3_000:]
        report: dict[str, Any] = json.loads(out.splitlines()[-1])
        return report

    yield run
    for driver in running:
        with suppress(ProcessLookupError):
            os.killpg(driver.pid, signal.SIGKILL)
