"""Drivers in processes of their own, against a real server of S3's API: killed or suspended at a request of a number."""

from __future__ import annotations

import json
import os
import random
import signal
import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from threading import Thread

import pytest
from tests.chaos.bombs import DONE, TAKEN_OVER
from tests.parameters import slow_but
from tests.runtime.forked import Forked, Parent
from tests.servers.fault_proxy import FINE, FaultProxy, Request
from tests.stores.process_driver import stream
from tests.stores.streams import SCENARIOS, BucketStream


@pytest.fixture(scope="module")
def parent(proxy: FaultProxy) -> Iterator[Parent]:
    del proxy  # whose address its drivers have in their environment
    made = Parent("tests.stores.process_driver")
    yield made
    made.close()


@dataclass(frozen=True)
class Nursery:
    """Starts drivers of one stream, and sends signals to them at requests."""

    proxy: FaultProxy
    parent: Parent
    made: BucketStream
    rows_seed: int

    def started(self, seed: int) -> Forked:
        folder = self.made.folder
        words = json.dumps([self.made.scenario, str(folder), self.rows_seed, seed])
        with (folder / "errors.txt").open("ab") as errors:
            driver = self.parent.fork(words, folder, errors)
        driver.stdin.close()
        return driver

    def done(self, seed: int) -> None:
        """Run a driver to its end."""
        driver = self.started(seed)
        driver.stdout.read()  # which ends with the driver
        driver.stdout.close()
        assert driver.wait() == DONE, (self.made.folder / "errors.txt").read_text()[-3_000:]

    def signalled(self, seed: int, at: int, number: int, when: str) -> tuple[Forked, bool]:
        """Run a driver until it gets a signal at its request `at`, or ends; return it, and whether it got the signal."""
        first, driver, events = len(self.proxy.requests), Future[Forked](), SimpleQueue[str]()

        def send() -> None:
            os.kill(driver.result().pid, number)
            events.put("signalled")

        def choose(request: Request) -> str:
            if request.number != first + at:
                return FINE
            if when == "before":
                send()
                return "reset before"
            self.proxy.afterwards = send
            return FINE

        def wait(running: Forked) -> None:
            running.stdout.read()  # which ends with the driver
            running.stdout.close()
            events.put("ended")

        self.proxy.choose = choose
        driver.set_result(self.started(seed))
        Thread(target=wait, args=[driver.result()], daemon=True).start()
        got = events.get()
        self.proxy.choose = lambda _: FINE
        return driver.result(), got == "signalled"


def place(chance: random.Random) -> tuple[int, str]:
    """Return a request at which something happens, and whether before or after it."""
    number = chance.choice([chance.randint(0, 30), chance.randint(0, 90), chance.randint(0, 250)])
    return number, chance.choice(["before", "after"])


def born(folder: Path, seed: int, proxy: FaultProxy, parent: Parent, chance: random.Random) -> Nursery:
    made = stream(chance.choice(SCENARIOS), folder / uuid.uuid4().hex, seed)
    made.folder.mkdir()
    return Nursery(proxy, parent, made, seed)


@pytest.mark.parametrize(("kills", "seed"), slow_but((), [(34, seed) for seed in (1, 2, 3)], [(34, 1)]))
def test_kills_at_requests_lose_and_double_nothing(
    proxy: FaultProxy, parent: Parent, tmp_path: Path, kills: int, seed: int
):
    """By night a hundred."""
    chance, left, streams = random.Random(seed), kills, count(1_000 * seed)
    while left > 0:
        nursery = born(tmp_path, next(streams), proxy, parent, chance)
        ended: int | None = None
        while ended != DONE:
            at, when = place(chance)
            ended = nursery.signalled(chance.randrange(1 << 30), at, signal.SIGKILL, when)[0].wait()
            assert ended in {DONE, -signal.SIGKILL}
            left -= ended == -signal.SIGKILL
        nursery.done(seed)
        nursery.made.check()


@pytest.mark.parametrize(
    ("pairs", "seed"), slow_but([(2, 0)], [(2, 0), (8, 0), *((25, seed) for seed in (1, 2, 3, 4))], [(8, 0)])
)
def test_of_two_drivers_one_continues(proxy: FaultProxy, parent: Parent, tmp_path: Path, pairs: int, seed: int):
    """The first is suspended at a request, the second runs to its end, and the first goes on: a hundred times by night.

    Each stream has its late sink from the first batch on: a driver that decided before that it has none might be refused.
    """
    chance, ends = random.Random(seed), Counter[int | None]()
    for number in range(pairs):
        rows_seed = 3 * (1_000 * seed + number)  # a multiple of three: see stream() in process_driver.py
        nursery = born(tmp_path, rows_seed, proxy, parent, chance)
        at, when = place(chance)
        first, is_suspended = nursery.signalled(seed, at, signal.SIGSTOP, when)
        nursery.done(seed + 1)
        if is_suspended:
            os.kill(first.pid, signal.SIGCONT)
        ends[first.wait()] += 1
        nursery.done(seed)
        nursery.made.check()
    assert set(ends) <= {DONE, TAKEN_OVER}
    assert ends[TAKEN_OVER] > 0
