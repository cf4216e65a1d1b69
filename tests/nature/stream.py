"""One stream of a scenario: its folder, the rows that it is fed, what its ledger says, and what it must have come to."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from tests.chaos.naive import Row
from tests.nature.disk import Disk
from tests.nature.driver import Task
from tests.nature.feeding import AHEAD, Files, Inputs
from tests.nature.judging import wrongs
from tests.nature.nursery import Nursery
from tests.nature.places import OF_FRONTS, OF_FUNCTIONS, PLACES, UNFINISHED
from tests.nature.rows import Steps
from tests.nature.scenarios import SCENARIOS, topic_of
from tests.nature.tally import Tally
from tests.nature.weather import Weather
from tests.servers.kafka import Broker

from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine.ledger import KEEP, Ledger


@dataclass(frozen=True)
class Place:
    """Where streams run: a disk, drivers, a broker, the weather, and where logs go."""

    disk: Disk
    nursery: Nursery
    broker: Broker | None
    weather: Weather | None
    logs: Path

    @property
    def address(self) -> str:
        return self.broker.address if self.broker is not None else ""


class Stream:
    """A stream in its folder."""

    def __init__(self, name: str, seed: int, place: Place, tally: Tally) -> None:
        self.folder = place.disk.root / f"{name}-{seed}"
        self.folder.mkdir()
        self.scenario, self.tally = SCENARIOS[name], tally
        self.steps = Steps(seed, self.scenario.habits)
        self._name, self._place = name, place
        self._chance = random.Random(seed)
        self._feeding = self._fed()
        self._read = 0
        self._batches: dict[int, tuple[int, int | None]] = {}
        #: starts in a row that have failed before a batch; seconds from a start to its first batch, as it was lately
        self.failed = 0
        self.usual = 5.0
        #: whether it has come to its end, or to one that is wrong
        self.is_over = False

    @property
    def name(self) -> str:
        """Its name, which its folder has."""
        return self.folder.name

    def _fed(self) -> Files | Inputs:
        broker = self._place.broker
        if broker is not None and self._name == "kafka":
            broker.create(topic_of(self.folder, "out"))
        if broker is not None and self.scenario.receiver:
            return Inputs(self.folder, self.steps, broker, self._place.logs / f"{self.name}-receiver.log")
        return Files(self.folder, self.steps)

    # -- what goes on all the time

    def tick(self) -> None:
        """Feed it, unless it has enough."""
        if (
            self._feeding.tick()
            and not self.is_over
            and self.steps.rows - self._read < AHEAD * self.scenario.habits.size
        ):
            self._feeding.feed()

    def fed(self) -> bool:
        """Do what goes on by itself; return whether all that was fed is there."""
        return self._feeding.tick()

    def task(self, **more: Any) -> Task:
        """Return a start of it, which may read in other batches and compute in other places than the last one."""
        self._note()
        return Task(self._name, self.folder, self._chance.randrange(1 << 30), self._place.address, **more)

    def committed(self, batch_id: int, rows: int, punctuation: int | None) -> None:
        """Note a batch that its driver has reported."""
        self._batches[batch_id] = rows, punctuation
        self._read += rows
        self.tally.batches += 1
        self.failed = 0

    def _note(self) -> None:
        """Take note of what the ledger has; so much is required of skypane, to know when it needs more rows."""
        with suppress(Exception):
            history = Ledger(DocumentStore.at(str(self.folder / "checkpoint" / "skypane"))).history(KEEP)
            self._batches |= {one["batch_id"]: (one["rows"], one["punctuation"]) for one in history}
            self._read = int(history[-1]["totals"]["read"])

    def kill_receiver(self) -> None:
        """Kill what receives its lines; feeding it starts that again."""
        assert self._feeding.receiver is not None
        self._feeding.receiver.kill()

    # -- places

    def place(self, number: int) -> str:
        """Return one of the places that its batches come to, counted on from the first one again after the last one."""
        own = {"continuous": OF_FRONTS + PLACES, "function": OF_FUNCTIONS, "kafka": OF_FUNCTIONS}
        places = own.get(self._name, PLACES)
        return places[number % len(places)]

    def place_of_drain(self, number: int) -> str:
        """Return one of the places after which its drain is repeated."""
        places = [place for place in UNFINISHED if self._name not in {"function", "kafka"} or place in OF_FUNCTIONS]
        return places[number % len(places)]

    # -- what is judged

    def wrongs(self, *, whole: bool) -> list[str]:
        """Return what is wrong with it, a sentence each; unless `whole`, it goes on."""
        self._note()
        return wrongs(self._name, self.folder, self.steps, self._cut(), self._place.address, whole=whole)

    def _cut(self) -> list[tuple[list[Row], int | None]]:
        """Return the rows of each batch, and the punctuation after it."""
        known = [self._batches[number] for number in sorted(self._batches)]
        ends = accumulate((rows for rows, _ in known), initial=0)
        return [
            (self.steps.sent[low:high], after) for (low, high), (_, after) in zip(pairwise(ends), known, strict=True)
        ]

    def promised(self) -> dict[str, tuple[int, int]]:
        """Return the files that a fenced driver changes no more: when each was changed, and its size."""
        kept = self.folder / "checkpoint" / "skypane"
        folders = [kept / "ledger", *(self.folder / name for name in ("out", "late", "front"))]
        files = [path for folder in folders for path in files_in(folder) if "_staging" not in path.parts]
        return {
            str(path.relative_to(self.folder)): _state(path)
            for path in (*files, kept / "definition.json")
            if path.exists()
        }

    # -- bits

    def flip(self) -> str:
        """Flip a bit of the checkpoint, of which there is a copy then; return which one."""
        shutil.copytree(self.folder, self._copy, ignore=shutil.ignore_patterns("in"))
        path = self._chance.choice([path for path in files_in(self.folder / "checkpoint") if path.stat().st_size])
        whole = bytearray(path.read_bytes())
        at = self._chance.randrange(8 * len(whole))
        whole[at // 8] ^= 1 << at % 8
        path.write_bytes(whole)
        return f"bit {at} of {path.relative_to(self.folder)}"

    def restore(self) -> None:
        """Put back the copy."""
        for path in self.folder.iterdir():
            if path.name != "in":
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.copytree(self._copy, self.folder, dirs_exist_ok=True)
        shutil.rmtree(self._copy)
        self._batches.clear()

    @property
    def _copy(self) -> Path:
        return self.folder.with_name(f"{self.name}-copy")

    def close(self, seconds: float) -> None:
        """Count it, which has taken so long, and remove what it has written."""
        self._feeding.close()
        self.tally.streams += 1
        self.tally.rows += self.steps.rows
        self.tally.seconds += seconds
        shutil.rmtree(self.folder, ignore_errors=True)


def files_in(folder: Path) -> Iterator[Path]:
    """Return all files in a folder, and in those within it."""
    return (path for path in sorted(folder.rglob("*")) if path.is_file())


def _state(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_mtime_ns, found.st_size
