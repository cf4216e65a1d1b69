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
    arguments = program.quick if quick else program.arguments if turn == 1 else program.again
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
    use = Use.between(clock, Clock.now(), max(after - before for before, after in zip(own, _own(), strict=True)))
    result = Result(program.name, arguments, turn, began.isoformat("T", "seconds"), seconds, use.others, use.steal)
    return result.with_found(found)


def _ended(command: Sequence[str], log: Path) -> int:
    """Run a command to its end; return its code. What it starts is looked at each second, so that its CPU time is known."""
    with log.open("wb") as output:
        child = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd=ROOT)  # noqa: S603 - a module of ours
    with child:
        while True:
            cpu_seconds()
            try:
                return child.wait(1.0)
            except subprocess.TimeoutExpired:
                continue


def _own() -> tuple[float, float]:
    """Return the CPU seconds of this process and of all that it has started, twice: as each was last seen, and as the system adds them up.

    The first lacks what processes use after they were last seen, the second those that nobody has waited for.
    """
    used = (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    return cpu_seconds(), sum(each.ru_utime + each.ru_stime for each in used)


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

    known: Mapping[tuple[str, bool], float]
    """Seconds by program, and whether it was its first turn."""

    @classmethod
    def of(cls, runs: Sequence[Run], *, quick: bool) -> Estimate:
        """Return the seconds of each program when it last ran."""
        results = (result for run in runs if run.quick == quick for result in run.results)
        return cls({(result.name, result.turn == 1): result.seconds for result in results})

    def with_result(self, result: Result) -> Estimate:
        """Return this with the seconds of one more."""
        return Estimate({**self.known, (result.name, result.turn == 1): result.seconds})

    def left(self, steps: Sequence[Step]) -> str:
        """Return how long these steps will take, in words; what has never run is counted and not guessed."""
        keys = [(program.name, turn == 1) for program, turn in steps]
        seconds = sum(self.known.get(key, 0.0) for key in keys)
        unknown = sum(key not in self.known for key in keys)
        about = f"about {words(seconds)} left" if seconds else ""
        new = f"{unknown} of unknown time, never run before" if unknown else ""
        return ", and ".join(filter(None, [about, new])) or "nothing left"


def words(seconds: float) -> str:
    """Return a time in words.

    >>> words(42.4), words(160), words(7_500)
    ('42 s', '3 min', '2 h 5 min')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def measure(
    run: Run, file: Path, steps: Sequence[Step], estimate: Estimate, logs: Path, say: Callable[[str], None]
) -> tuple[Run, list[str]]:
    """Run the steps; write the file after each. Return the run, and what has no result that may be published."""
    troubles: list[str] = []
    for number, step in enumerate(steps, 1):
        program, turn = step
        name = program.name if program.turns == 1 else f"{program.name}, turn {turn} of {program.turns}"
        say(f"[{number}/{len(steps)}] {name}: {estimate.left(steps[number - 1 :])}")
        try:
            result = result_of(step, logs / f"{program.name}-{turn}.log", quick=run.quick)
        except ProgramError as error:
            troubles.append(str(error))
            say(f"  {error}")
            continue
        run = run.added(result)
        run.write(file)
        estimate = estimate.with_result(result)
        disturbed = Use(result.others, result.steal).why_not
        say(f"  {words(result.seconds)}{f'; {disturbed}' if disturbed else ''}")
        if disturbed and not (run.quick or run.anyway):
            troubles.append(f"{name}: {disturbed}")
    return run, troubles
