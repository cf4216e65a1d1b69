"""Drivers in processes of their own, against a real server of S3's API: killed or suspended at a request of a number."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.chaos.bombs import DONE, TAKEN_OVER
from tests.servers import fault_proxy, s3
from tests.servers.fault_proxy import FINE, FaultProxy, Request
from tests.stores.process_driver import stream
from tests.stores.streams import BucketStream

ROOT = Path(__file__).parents[2]
SCENARIOS = ("skyline", "sums", "amended", "early")


@pytest.fixture(scope="module")
def proxy() -> Iterator[FaultProxy]:
    with s3.running() as port, fault_proxy.before(port) as (running, own), s3.connected(own):
        yield running


class Nursery:
    """Starts drivers of one stream after the other, and sends signals to them at requests."""

    def __init__(self, proxy: FaultProxy, made: BucketStream, rows_seed: int) -> None:
        self._proxy, self._made, self._rows_seed = proxy, made, rows_seed

    def started(self, seed: int) -> subprocess.Popen[bytes]:
        path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
        words = [self._made.scenario, str(self._made.folder), str(self._rows_seed), str(seed)]
        command = [sys.executable, "-m", "tests.stores.process_driver", *words]
        return subprocess.Popen(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": path, "NUMBA_NUM_THREADS": "1"})

    def signalled(self, seed: int, at: int, number: int, when: str) -> tuple[subprocess.Popen[bytes], bool]:
        """Run a driver up to its request `at`; return it, and whether it came so far."""
        first = len(self._proxy.requests)
        process: list[subprocess.Popen[bytes]] = []
        reached: list[bool] = []

        def choose(request: Request) -> str:
            if request.number != first + at or reached:
                return FINE
            reached.append(True)
            if when == "before":
                process[0].send_signal(number)
                return "reset before"
            self._proxy.afterwards = lambda: process[0].send_signal(number)
            return FINE

        self._proxy.choose = choose
        process.append(self.started(seed))
        options = os.WUNTRACED if number == signal.SIGSTOP else 0
        _, status = os.waitpid(process[0].pid, options)
        if not os.WIFSTOPPED(status):
            process[0].returncode = os.waitstatus_to_exitcode(status)
        self._proxy.choose = lambda _: FINE
        return process[0], bool(reached)


def place(chance: random.Random) -> tuple[int, str]:
    """Return a request at which something happens, and whether before or after it."""
    return chance.choice([chance.randint(0, 30), chance.randint(0, 90), chance.randint(0, 250)]), chance.choice(
        ["before", "after"]
    )


def born(folder: Path, seed: int, proxy: FaultProxy, chance: random.Random) -> tuple[BucketStream, Nursery]:
    made = stream(chance.choice(SCENARIOS), folder / f"stream-{seed}", seed)
    made.folder.mkdir()
    return made, Nursery(proxy, made, seed)


@pytest.mark.slow
def test_a_hundred_kills_at_requests(proxy: FaultProxy, tmp_path: Path):
    chance, kills, seed = random.Random(1), 0, 0
    while kills < 100:
        seed += 1
        made, nursery = born(tmp_path, seed, proxy, chance)
        while True:
            at, when = place(chance)
            process, _ = nursery.signalled(chance.randrange(1 << 30), at, signal.SIGKILL, when)
            assert process.returncode in {DONE, -signal.SIGKILL}
            if process.returncode == DONE:
                break
            kills += 1
        assert nursery.started(seed).wait() == DONE
        made.check()


@pytest.mark.slow
def test_a_hundred_pairs_of_drivers(proxy: FaultProxy, tmp_path: Path):
    """The first is suspended at a request, the second runs to its end, and the first goes on."""
    chance, ends = random.Random(2), Counter[int]()
    for seed in range(1, 101):
        made, nursery = born(tmp_path, seed, proxy, chance)
        at, when = place(chance)
        first, reached = nursery.signalled(seed, at, signal.SIGSTOP, when)
        assert nursery.started(seed + 1).wait() == DONE
        if reached and first.returncode is None:
            first.send_signal(signal.SIGCONT)
        assert first.wait() in {DONE, TAKEN_OVER}
        ends[first.returncode] += 1
        assert nursery.started(seed).wait() == DONE
        made.check()
    assert ends[TAKEN_OVER] > 0
