"""Clocks and renames are what the weather says, in programs that are started under it, and change while they run."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.nature.weather import Weather

ASKED = """
import datetime, os, sys, time
for line in sys.stdin:
    began = time.monotonic()
    open("a", "w").close(); os.rename("a", "b")
    print(time.time(), datetime.datetime.now().timestamp(), time.monotonic() - began, flush=True)
"""


def test_programs_feel_it_while_they_run(tmp_path: Path):
    weather = Weather.made(tmp_path)
    if weather is None:
        pytest.skip("there is no C compiler here")
    with subprocess.Popen(
        [sys.executable, "-c", ASKED], cwd=tmp_path, env=os.environ | weather.environment, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None

        def clocks() -> list[float]:
            print(file=process.stdin, flush=True)
            return [float(part) for part in process.stdout.readline().split()]  # type: ignore[union-attr]

        now, also, took = clocks()
        assert abs(now - time.time()) < 60
        assert abs(also - now) < 60
        weather.be(ahead=-86_400, slow=0.3)
        now, also, took = clocks()
        assert abs(now - time.time() + 86_400) < 60
        assert abs(also - now) < 60
        assert took >= 0.3
        weather.be()
        assert abs(clocks()[0] - time.time()) < 60
        process.stdin.close()
