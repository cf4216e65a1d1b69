"""Streams of all scenarios in turn, until so many processes were killed."""

from __future__ import annotations

import itertools
import json
import logging
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from tests.checkout import ROOT
from tests.nature.disk import Disk
from tests.nature.nursery import Nursery
from tests.nature.scenarios import SCENARIOS
from tests.nature.schedule import at_each_place
from tests.nature.stream import Place
from tests.nature.tally import Tally
from tests.nature.team import Team
from tests.nature.weather import Weather
from tests.servers.kafka import broker, known_classpath

log = logging.getLogger("nature")

ROUND: Final = 30
"""Kills of a stream, about, by default."""


TOGETHER: Final = 6
"""Streams that a driver runs side by side: one start of Java pays for a kill of each."""


def campaign(names: Sequence[str], kills: int, seed: int, logs: Path, each: int = ROUND) -> dict[str, Tally]:
    """Kill so many processes of streams of these scenarios, some together and those in turn; return what was done and found."""
    with _run(names, logs) as (place, tallies):
        teams = _teams(names)
        for number in itertools.count():
            left = kills - _kills(tallies)
            if left <= 0:
                break
            team = teams[number % len(teams)]
            Team(team, seed * 1_000_003 + number, place, tallies).run(min(left, each * len(team)))
            log.info("%s have ended; %d kills in all", ", ".join(team), _kills(tallies))
    return tallies


def at_places(
    names: Sequence[str], seed: int, logs: Path, places: int, takeovers: int, drains: int
) -> dict[str, Tally]:
    """Have drivers of streams of these scenarios killed at places of their batches, taken over there, and killed in drains."""
    with _run(names, logs) as (place, tallies):
        teams = _teams(names)
        place.nursery.most = len(teams) * (places + 2 * takeovers + drains + 1)
        for number, team in enumerate(teams):
            lives = at_each_place(places, takeovers)
            Team(team, seed * 1_000_003 + number, place, tallies).run_at(lives, drains)
    return tallies


def _kills(tallies: Mapping[str, Tally]) -> int:
    return sum(tally.kills for tally in tallies.values())


def _teams(names: Sequence[str]) -> list[list[str]]:
    """Return which streams run side by side: those of one master, and with a broker or without."""
    alike: dict[object, list[str]] = {}
    for name in names:
        alike.setdefault((SCENARIOS[name].master, SCENARIOS[name].broker), []).append(name)
    return [list(team) for some in alike.values() for team in _parts(some)]


def _parts(names: Sequence[str]) -> Iterator[Sequence[str]]:
    """Cut names into as few parts of about the same size as there may be."""
    count = -(-len(names) // TOGETHER)
    return (names[part::count] for part in range(count))


@contextmanager
def _run(names: Sequence[str], logs: Path) -> Iterator[tuple[Place, dict[str, Tally]]]:
    """Have all that streams need while the context is open, and note at its end what was done and found."""
    tallies = {name: Tally() for name in names}
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="skypane-nature-")))
        yield _place(names, root, logs, stack), tallies
    (logs / "tally.json").write_text(json.dumps({name: tally.to_json() for name, tally in tallies.items()}))


def _place(names: Sequence[str], root: Path, logs: Path, stack: ExitStack) -> Place:
    weather = Weather.made(root)
    if weather is None:
        log.warning("there is no C compiler here: clocks stay right, and renames quick")
    disk = Disk(root / "disk")
    stack.callback(disk.close)
    if not disk.can_be_full:
        log.warning("nothing may be mounted here: the disk does not fill")
    needed = any(SCENARIOS[name].broker for name in names)
    kafka = stack.enter_context(broker(known_classpath(ROOT / ".pytest_cache" / "kafka-classpath"))) if needed else None
    nursery = Nursery(logs, {} if weather is None else weather.environment)
    stack.callback(nursery.close)
    return Place(disk, nursery, kafka, weather, logs)


def side_by_side(names: Sequence[str], kills: int, seed: int, logs: Path, each: int, jobs: int) -> dict[str, Tally]:
    """Run campaigns in so many processes, with seeds of their own; return the sums of what they did and found."""
    running = []
    for job in range(jobs):
        share = [*names[job * len(names) // jobs :], *names[: job * len(names) // jobs]]
        command = [sys.executable, "-m", "tests.nature", "--kills", str(-(-kills // jobs)), "--seed", str(seed + job), "--each", str(each),
                   "--logs", str(logs / str(job)), *itertools.chain(*(("--scenario", name) for name in share))]  # fmt: skip
        running.append(subprocess.Popen(command, cwd=ROOT))
    for process in running:
        process.wait()
    tallies = {name: Tally() for name in names}
    for job in range(jobs):
        for name, value in json.loads((logs / str(job) / "tally.json").read_text()).items():
            tallies[name].add(Tally.from_json(value))
    return tallies
