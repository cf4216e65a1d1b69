"""Streams over Spark Connect whose server, process beside the server, or client is killed, at file operations of random numbers."""

from __future__ import annotations

import json
import random
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from subprocess import TimeoutExpired

import pytest
from tests.parameters import times
from tests.runtime import continuous_streams
from tests.runtime.connect_bombs import VICTIMS
from tests.runtime.connect_client import DONE, FAILED, QUERIES
from tests.runtime.connect_driver import LOAD, SKYLINE, plan
from tests.runtime.connect_server import ConnectServer, running
from tests.runtime.forked import Forked, Parent
from tests.runtime.streams import expected, late_rows, parquet_rows, windows_of, write_batches

from skypane.runtime import local

pytest.importorskip("grpc", reason="needs pip install 'skypane[connect]'")

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def parent() -> Iterator[Parent]:
    made = Parent("tests.runtime.connect_client")
    yield made
    made.close()


class Campaign:
    """Runs streams one after the other, each over and over until it has come to its end."""

    def __init__(self, parent: Parent, folder: Path, seed: int) -> None:
        self._parent, self._folder, self._chance = parent, folder, random.Random(seed)
        self._servers = ExitStack()
        self._server: ConnectServer | None = None
        self.killed: Counter[str] = Counter()
        self._streams = seed

    def run(self, victim: str, kills: int) -> None:
        with self._servers:
            while self.killed[victim] < kills:
                self._stream(victim, kills)

    def _stream(self, victim: str, kills: int) -> None:
        """Run one stream to its end. The queries alternate; the seed says which is first, since a short campaign has few streams."""
        self._streams += 1
        query, folder = QUERIES[self._streams % len(QUERIES)], self._folder / str(self._streams)
        batches = late_rows(self._chance.randrange(1 << 30), batches=6, rows=40)
        write_batches(folder / "in", batches)
        while self.killed[victim] < kills and not self._ended(folder, query, victim):
            pass
        assert self._start(folder, query, None).wait() == DONE, self._errors(folder)
        events = [*batches, local.Drain()]
        if query == "continuous":
            updates = [update for step in continuous_streams.expected(events) for update in step]
            assert continuous_streams.plain(parquet_rows(folder / "out")) == updates
        else:
            wanted = expected(plan(SKYLINE if query == "skyline" else LOAD), events)
            assert windows_of(parquet_rows(folder / "out")) == wanted

    def _ended(self, folder: Path, query: str, victim: str) -> bool:
        """Start the stream with a bomb; return whether it came to its end, since the bomb lay behind that."""
        at = self._chance.choice([self._chance.randint(1, 14), self._chance.randint(1, 80)])
        when = self._chance.choice(["before", "half", "after"])
        client = self._start(folder, query, (victim, at, when))
        ended = self._wait(client)
        if ended == DONE:
            return True
        expected_ends = {"process": FAILED, "server": -signal.SIGKILL, "client": -signal.SIGKILL}
        assert ended == expected_ends[victim], self._errors(folder)
        self.killed[victim] += 1
        return False

    def _start(self, folder: Path, query: str, bomb: tuple[str, int, str] | None) -> Forked:
        words = json.dumps([self._address(), query, str(folder), bomb])
        with (folder / "errors.txt").open("ab") as errors:
            client = self._parent.fork(words, folder, errors)
        client.stdin.close()
        client.stdout.close()
        return client

    def _wait(self, client: Forked) -> int | None:
        """Wait for a client, which is killed if its server is: it would repeat its call for ten minutes."""
        assert self._server is not None
        while client.poll() is None:
            try:
                self._server.process.wait(0.1)
            except TimeoutExpired:
                continue
            client.kill()
            self._server = None
            return client.wait()
        return client.returncode

    def _address(self) -> str:
        """Return the address of the server, which is started if there is none, or none any more."""
        if self._server is None or self._server.process.poll() is not None:
            self._server = self._servers.enter_context(running(self._folder / f"server-{sum(self.killed.values())}"))
        return self._server.address

    def _errors(self, folder: Path) -> str:
        return (folder / "errors.txt").read_text()[-5_000:]


@pytest.mark.parametrize(("victim", "kills"), [("process", 2), ("server", 1), ("client", 1)])
def test_kills_at_random_moments_lose_and_double_nothing(parent: Parent, tmp_path: Path, victim: str, kills: int):
    assert victim in VICTIMS
    kills = times(kills)
    campaign = Campaign(parent, tmp_path, seed=kills)
    campaign.run(victim, kills)
    assert campaign.killed[victim] >= kills
