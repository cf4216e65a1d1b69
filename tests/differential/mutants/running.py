"""One mutant after the other against random cases: killed by a case that fails, a crash or a time limit, or survived."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Final

from tests.checkout import ROOT
from tests.differential.mutants.child import PRELOADED, tried
from tests.differential.mutants.copies import copy, mutate
from tests.differential.mutants.mutant import Mutant

SPARK: Final = "tests.differential.spark"
CORE: Final = "tests.differential.mutants.first"
ALONE: Final = {"points": "tests.differential.points", "policies": "tests.differential.policies",
                **{kind: f"{SPARK}.{kind}" for kind in ("expressions", "values", "extremes")}}  # fmt: skip
"""What has cases of its own, by kind."""
GRACE: Final = 120.0
"""Seconds beyond its own until a run is ended: for what it compiles first, and to make a failing case small."""

_TRIES: Final = 5
_APART: Final = 100_000


@dataclass(frozen=True)
class Fate:
    """What became of a mutant: by what it was killed, None: by nothing; and how long that took."""

    mutant: Mutant
    by: str | None
    seconds: float

    def __str__(self) -> str:
        """One line of the table."""
        output = "SURVIVED" if self.by is None else "killed"
        return (
            f"{self.mutant.id:28} {self.mutant.layer:10} {output:9} {self.seconds:6.1f} s  {self.by or self.mutant.why}"
        )


class Harness:
    """Runs random cases against copies of the sources that lie in `folder`."""

    def __init__(self, folder: Path, seconds: float, seed: int) -> None:
        self._folder = folder
        self._seconds = seconds
        self._seed = seed
        #: of each run, the cases that the sources as they are pass
        self._passed: dict[tuple[str, ...], tuple[str, ...]] = {}
        #: cases of the last run that passed
        self._count = 0
        self._base = folder / "base"
        copy(ROOT / "src", self._base)
        copy(ROOT / "tests", folder / "tests")  # edits made meanwhile shall not be in it

    def check(self, mutants: Sequence[Mutant]) -> list[str]:
        """Try the sources as they are, which compiles them too; return what fails.

        Where a case fails others are tried: a mutant counts as killed by cases only that pass without it. RuntimeError if none pass.
        """
        faults = []
        for run in dict.fromkeys(run for mutant in mutants for run in _runs(mutant)):
            for seed in range(self._seed, self._seed + _TRIES * _APART, _APART):
                begin = ("--seed", f"{seed}")
                self._failure(
                    self._base, (*run, *begin, "--cases", "4" if run[0].startswith(SPARK) else "40")
                )  # compiles what they use
                if (by := self._failure(self._base, (*run, *begin, "--seconds", f"{self._seconds:g}"))) is None:
                    self._passed[run] = (*begin, "--cases", f"{self._count}")
                    break
                faults.append(f"{' '.join(run)} fails without any mutant: {by}")
            else:
                raise RuntimeError("\n".join(faults))
        return faults

    def fate(self, mutant: Mutant) -> Fate:
        """Try a mutant: first where it shows soonest."""
        sources, began = self._folder / mutant.id, time.perf_counter()
        copy(self._base, sources)
        mutate(sources, mutant)
        killers = (self._failure(sources, (*run, *self._passed[run])) for run in _runs(mutant))
        by = next((killer for killer in killers if killer is not None), None)
        shutil.rmtree(sources)
        return Fate(mutant, by, time.perf_counter() - began)

    def _failure(self, sources: Path, run: tuple[str, ...]) -> str | None:
        """Return what has failed; RuntimeError if the run itself cannot be had."""
        limit = self._seconds + GRACE
        code, output = (_started if run[0].startswith(SPARK) else _forked)(run, sources, self._folder, limit)
        if code is None:
            return f"the time limit of {limit:.0f} s"
        if code == 0:
            self._count = int(_last(output).split()[0])
            return None
        if code < 0:
            return f"a crash ({signal.Signals(-code).name})"
        if code != 1:
            raise RuntimeError(f"{' '.join(run)} cannot be run: {output[-2_000:]}")
        return _in_short(output)


def _forked(run: tuple[str, ...], sources: Path, folder: Path, limit: float) -> tuple[int | None, str]:
    """Run a module in a process that begins with all but skypane imported; return its exit code, None if it had to be ended."""
    context = get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    output = sources.with_suffix(".output")
    process = context.Process(target=tried, args=(run, sources, folder, output))
    process.start()
    process.join(limit)
    code = process.exitcode
    if code is None:
        process.kill()
    process.join()
    return code, output.read_text(errors="replace") if output.exists() else ""


def _started(run: tuple[str, ...], sources: Path, folder: Path, limit: float) -> tuple[int | None, str]:
    """Run a module in a process of its own, which may start others."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    with subprocess.Popen(
        [sys.executable, "-m", *run],
        cwd=folder,
        env=environment | {"PYTHONPATH": os.pathsep.join([str(sources), str(folder)])},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return None, ""
    return process.returncode, output


def _runs(mutant: Mutant) -> Iterator[tuple[str, ...]]:
    """Yield what is run for a mutant, first where it shows soonest."""
    module = SPARK if mutant.spark else CORE
    yield from ((ALONE[kind],) if kind in ALONE else (module, "--only", kind) for kind in mutant.kinds)
    yield (module,)


def _in_short(output: str) -> str:
    """Return the line that names a seed, or the last one."""
    named = [line for line in output.splitlines() if line.startswith("seed ")]
    return (named[-1] if named else _last(output))[:160]


def _last(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return lines[-1] if lines else "exit 1"
