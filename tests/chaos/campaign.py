"""Kills drivers of streams, over and over, until each has come to its end, then begins another: python -m tests.chaos.campaign.

A line of standard input, "SCENARIO KILLS SEED" with tabs between, requests a campaign; a line of JSON says what came of it, which
is what went wrong if a stream did not come to what brute force says. All drivers are forks of this one process, which has loaded
what they need. Streams lie in a file system in memory, where there is one: what a killed process has written is there, synced or
not, and syncing took half of the time.
"""

from __future__ import annotations

import json
import logging
import os
import random
import shutil
import signal
import sys
import tempfile
import traceback
from collections import Counter
from pathlib import Path

import pyarrow as pa
from tests.chaos.bombs import DONE, TAKEN_OVER, ended, start
from tests.chaos.driver import Stream, drive
from tests.chaos.naive import rows
from tests.chaos.scenarios import SCENARIOS

from skypane import kernels
from skypane.testing.kills import Bomb

BATCHES = 10
IN_MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of a random name is made in it
"""Where Linux keeps files in memory."""


class Campaign:
    """Counts how drivers of a scenario ended."""

    def __init__(self, scenario: str, seed: int, root: Path) -> None:
        self._scenario, self._root = scenario, root
        self._chance = random.Random(seed)
        self.ends: Counter[int] = Counter()
        self.streams = self.shown = 0

    def run(self, kills: int) -> None:
        while self.ends[-signal.SIGKILL] < kills:
            stream = self._stream()
            collides = 0.2 if stream.row.collides else 0
            while (self._collide if self._chance.random() < collides else self._kill)(stream) != DONE:
                pass
            self._check_end(ended(start(stream, self._chance.randrange(1 << 30))), DONE)
            self.shown += stream.check()
            shutil.rmtree(stream.folder)
            self.streams += 1
        assert self.shown, "what the scenario is about has happened in a stream"

    def _stream(self) -> Stream:
        folder, chance = Path(tempfile.mkdtemp(dir=self._root)), self._chance
        row = SCENARIOS[self._scenario]
        table = rows(chance.randrange(1 << 30), BATCHES, **row.rows)
        return Stream(self._scenario, folder, table, chance.choice(row.late), chance.choice(row.drained))

    def _bomb(self, number: int = signal.SIGKILL) -> Bomb:
        at = self._chance.choice([self._chance.randint(1, 14), self._chance.randint(1, 80)])
        return Bomb(at, self._chance.choice(["before", "half", "after"]), number)

    def _kill(self, stream: Stream) -> int:
        """Run a driver to its death, or to the end of the stream."""
        return self._check_end(ended(start(stream, self._chance.randrange(1 << 30), self._bomb())), DONE)

    def _collide(self, stream: Stream) -> int:
        """Let a driver stand still, have another take over and be killed, and wake the first."""
        first = start(stream, self._chance.randrange(1 << 30), self._bomb(signal.SIGSTOP))
        stood = ended(first)
        if stood != -signal.SIGSTOP:
            return self._check_end(stood, DONE)
        second = self._kill(stream)
        os.kill(first, signal.SIGCONT)
        self._check_end(ended(first), DONE, TAKEN_OVER)
        return second

    def _check_end(self, code: int, *expected: int) -> int:
        self.ends[code] += 1
        if code not in {*expected, -signal.SIGKILL}:
            raise AssertionError(f"a driver ended with {code}; its last words stand above")
        return code


def warm(root: Path) -> None:
    """Load all there is before the forks."""
    kernels.warm()
    pa.set_cpu_count(1)
    for name, row in SCENARIOS.items():
        drive(Stream(name, root / name, rows(1, BATCHES, **row.rows), 0, -1), random.Random(0))


def outcome(scenario: str, kills: int, seed: int, root: Path) -> dict[str, object]:
    campaign = Campaign(scenario, seed, root)
    try:
        campaign.run(kills)
    except Exception:  # noqa: BLE001 - whatever it is, its test fails
        return {"wrong": traceback.format_exc()}
    return {
        "kills": campaign.ends[-signal.SIGKILL], "streams": campaign.streams, "taken over": campaign.ends[TAKEN_OVER],
    }  # fmt: skip


def main() -> None:
    logging.disable(logging.CRITICAL)
    place = IN_MEMORY if IN_MEMORY.is_dir() and os.access(IN_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="skypane-chaos-", dir=place) as root:
        warm(Path(root))
        for request in sys.stdin:
            scenario, kills, seed = request.rstrip("\n").split("\t")
            print(json.dumps(outcome(scenario, int(kills), int(seed), Path(root))), flush=True)


if __name__ == "__main__":
    main()
