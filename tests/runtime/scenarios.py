"""What tests run in processes of their own: a Python whose lines they read, or a series of scenarios.

A Spark, or a client of one, that has started serves all tests of a module in turn.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Timer
from typing import Any, Final

PATIENCE: Final = 900
"""Seconds after which a scenario that has not ended fails."""
Found = Callable[..., Any]
"""Runs a scenario, whose name and arguments it is called with, and returns what it finds."""


def lines_of(*arguments: object, env: Mapping[str, str] = os.environ, cwd: Path | None = None) -> list[str]:
    """Run a Python, which must succeed; return the lines that it prints."""
    done = subprocess.run(
        [sys.executable, *map(str, arguments)], cwd=cwd, env=env, capture_output=True, text=True, check=False,
        timeout=5 * PATIENCE,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-5_000:]
    return done.stdout.splitlines()


def serve(run: Found) -> None:
    """Call `run` with what each line of the input has, a list in JSON, and print what it returns, or why it failed.

    What scenarios print themselves goes to where errors go.
    """
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    for line in sys.stdin:
        try:
            answer = {"found": run(*json.loads(line))}
        except Exception:  # noqa: BLE001 - whatever it is, it is the test that fails
            answer = {"failed": traceback.format_exc()}
        print(json.dumps(answer), file=answers, flush=True)


@contextmanager
def serving(
    module: str,
    *arguments: str,
    log: Path,
    python: str = sys.executable,
    environment: Mapping[str, str] = os.environ,
    cwd: Path | None = None,
) -> Iterator[Found]:
    """Start a program that calls serve(), and yield what has it run a scenario. It ends, with all it has started, at the end."""
    with log.open("wb") as errors, subprocess.Popen(
        [python, "-m", module, *arguments], env=environment, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=errors, text=True, start_new_session=True,
    ) as process:  # fmt: skip
        try:
            yield lambda *request: _found(process, request, log)
            process.communicate(timeout=PATIENCE)
        finally:
            _kill(process)


def _found(process: subprocess.Popen[str], request: tuple[object, ...], log: Path) -> Any:
    assert process.stdin is not None
    assert process.stdout is not None
    watchdog = Timer(PATIENCE, _kill, [process])
    watchdog.start()
    try:
        with suppress(BrokenPipeError):
            print(json.dumps(request), file=process.stdin, flush=True)
        answer = json.loads(process.stdout.readline() or "{}")
    finally:
        watchdog.cancel()
    assert "found" in answer, answer.get("failed", log.read_text(errors="replace")[-3_000:])
    return answer["found"]


def _kill(process: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
