"""Programs run one after the other, each in a process of its own, and noted in the file of the run."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter
from typing import Final

from measure.bench.programs import Program
from measure.processes import cpu_seconds
from measure.results.machine import Clock, Use
from measure.results.record import Found, Result, Run, found_in

ROOT: Final = Path(__file__).parents[2]
OLDEST: Final = timedelta(days=1)
"""A run that began longer ago is not continued."""

Step = tuple[Program, int]
"""A program, and which of its turns."""


class ProgramError(RuntimeError):
    """A program failed; the message names it and the file with its output."""


def result_of(step: Step, log: Path, *, quick: bool) -> Result:
    """Run a program; its output goes to the log. Raises ProgramError if it fails."""
    program, turn = step
    arguments = program.quick if quick else program.arguments
    log.parent.mkdir(parents=True, exist_ok=True)
    began, clock, own, at = datetime.now(UTC), Clock.now(), _own(), perf_counter()
    with tempfile.TemporaryDirectory(prefix="skypane-bench-") as folder:
        file = Path(folder) / "found.json"
        command = [sys.executable, "-m", "measure.results.child", f"measure.bench.{program.module}", str(file)]
        code = _ended([*command, *arguments], log)
        seconds = perf_counter() - at
        if code or not file.exists():
            raise ProgramError(f"{program.name} ended with {code}; its output is in {log}")
        found: Found = found_in(json.loads(file.read_bytes()))
    use = Use.between(clock, Clock.now(), _own() - own)
    result = Result(program.name, arguments, turn, began.isoformat("T", "seconds"), seconds, use.others, use.steal)
    return result.with_found(found)


def _ended(command: Sequence[str], log: Path) -> int:
    """Run a command to its end; return its code. What it starts is looked at each second, so that its CPU time is known."""
    with (
        log.open("wb") as output,
        subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd=ROOT) as child,
    ):  # noqa: S603
        while True:
            cpu_seconds()
            try:
                return child.wait(1.0)
            except subprocess.TimeoutExpired:
                continue


def _own() -> float:
    """Return the CPU seconds of this process and of all that it has started: as they were last seen, or as the system adds them up."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    mine = resource.getrusage(resource.RUSAGE_SELF)
    return max(cpu_seconds(), sum((ended.ru_utime, ended.ru_stime, mine.ru_utime, mine.ru_stime)))


def missing(run: Run, steps: Sequence[Step]) -> list[Step]:
    """Return the steps of which the run has no result that may be published; of a quick run, no result."""
    done = {
        (result.name, result.turn)
        for result in run.results
        if run.anyway or run.quick or not Use(result.others, result.steal).why_not
    }
    return [(program, turn) for program, turn in steps if (program.name, turn) not in done]


def to_continue(runs: Mapping[Path, Run], new: Run, steps: Sequence[Step]) -> tuple[Path, Run] | None:
    """Return the newest run if it is like the new one and of the last day, and lacks some of the steps."""
    for file, known in sorted(runs.items(), key=lambda pair: pair[1].began, reverse=True)[:1]:
        same = replace(known, began=new.began, results=()) == replace(new, results=())
        age = datetime.fromisoformat(new.began) - datetime.fromisoformat(known.began)
        if same and age < OLDEST and missing(known, steps):
            return file, known
    return None


@dataclass(frozen=True, slots=True)
class Estimate:
    """How long programs take, by what they took in earlier runs and in this one."""

    known: Mapping[str, float]

    @classmethod
    def of(cls, runs: Sequence[Run], *, quick: bool) -> Estimate:
        """Return the seconds of each program when it last ran."""
        return cls({result.name: result.seconds for run in runs if run.quick == quick for result in run.results})

    def left(self, steps: Sequence[Step]) -> str:
        """Return how long these steps will take, in words; what has never run is counted and not guessed."""
        seconds = sum(self.known.get(program.name, 0.0) for program, _ in steps)
        unknown = len({program.name for program, _ in steps} - self.known.keys())
        about = f"about {words(seconds)} left" if seconds else ""
        new = f"{unknown} of the programs left have not been run before" if unknown else ""
        return ", and ".join(filter(None, [about, new])) or "nothing left"


def words(seconds: float) -> str:
    """Return a time in words.

    >>> words(42.4), words(150), words(7_500)
    ('42 s', '3 min', '2 h 5 min')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def measure(
    run: Run, file: Path, steps: Sequence[Step], estimate: Estimate, logs: Path, say: Callable[[str], None]
) -> tuple[Run, list[str]]:
    """Run the steps; write the file after each. Return the run, and what went wrong."""
    troubles: list[str] = []
    known = dict(estimate.known)
    for number, step in enumerate(steps, 1):
        program, turn = step
        name = program.name if program.turns == 1 else f"{program.name}, turn {turn} of {program.turns}"
        say(f"[{number}/{len(steps)}] {name}: {Estimate(known).left(steps[number - 1 :])}")
        try:
            result = result_of(step, logs / f"{program.name}-{turn}.log", quick=run.quick)
        except ProgramError as error:
            troubles.append(str(error))
            say(f"  {error}")
            continue
        run = run.added(result)
        run.write(file)
        known[program.name] = result.seconds
        disturbed = Use(result.others, result.steal).why_not
        say(f"  {words(result.seconds)}{f'; {disturbed}' if disturbed else ''}")
        if disturbed and not run.quick:
            troubles.append(f"{name}: {disturbed}")
    return run, troubles
