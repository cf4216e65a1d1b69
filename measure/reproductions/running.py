"""Figures measured in several processes, and those that measure time one by one after them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter, process_time
from typing import NamedTuple

from skypane.types import ConfigError
from skypane_papers import page, registry
from skypane_papers.figure import measure


class Told(NamedTuple):
    """A figure's text, and the seconds that it took: by the clock, and of its process's CPU."""

    name: str
    text: str
    seconds: float
    cpu: float


@dataclass(frozen=True, slots=True)
class Running:
    """How figures are measured.

    jobs     processes for the figures that do not measure time
    quick    whether streams are too short for the claims
    traces   folder of the published rates of paper 5
    """

    jobs: int = 1
    quick: bool = False
    traces: Path | None = None

    def __post_init__(self) -> None:
        if self.jobs < 1:
            raise ConfigError(f"jobs must be at least 1, got {self.jobs}")

    def told(self, name: str) -> Told:
        """Measure a figure in this process."""
        begin, cpu = perf_counter(), process_time()
        text = page.text(measure(name, registry.figure(name), quick=self.quick, traces=self.traces))
        return Told(name, text, perf_counter() - begin, process_time() - cpu)

    def over(self, names: Sequence[str]) -> Iterator[Told]:
        """Yield each figure as soon as it is measured; those that measure time come last, with nothing beside."""
        beside, alone = split(names)
        yield from map(self.told, beside) if self.jobs == 1 else self._beside(beside)
        yield from map(self.told, alone)

    def _beside(self, names: Sequence[str]) -> Iterator[Told]:
        """Yield figures of several processes; raise what some of them raised once the others are done."""
        failed = []
        with ProcessPoolExecutor(self.jobs, mp_context=get_context("spawn")) as pool:
            of = {pool.submit(self.told, name): name for name in names}
            for done in as_completed(of):
                error = done.exception()
                if error is None:
                    yield done.result()
                else:
                    error.add_note(of[done])
                    failed.append(error)
        if failed:
            raise BaseExceptionGroup("some figures failed", failed)


def split(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the figures that may be measured beside each other, and those that measure time."""
    timings = [name for name in names if registry.figure(name).timing]
    return [name for name in names if name not in timings], timings
