"""One stream of a scenario, driver after driver, each with the life that the schedule gives it; then the oracle."""

from __future__ import annotations

import logging
import os
import random
import re
import shutil
import signal
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.nature import schedule
from tests.nature.disk import Disk
from tests.nature.driver import BATCH, DONE, FAILED, STOPPED, UP, Task
from tests.nature.feeding import AHEAD, Files, Inputs
from tests.nature.judging import wrongs
from tests.nature.nursery import Driver, HungError, Nursery
from tests.nature.processes import is_there, strike
from tests.nature.rows import Steps
from tests.nature.scenarios import SCENARIOS, topic_of
from tests.nature.schedule import Act, Life, Means
from tests.nature.silence import Silence
from tests.nature.tally import Tally
from tests.nature.weather import Weather
from tests.servers.kafka import Broker

from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine.ledger import Ledger

log = logging.getLogger("nature")

EXCUSES: Final = {
    schedule.FULL: r"[Nn]o space left|make room",
    schedule.SILENT: r"did not answer|has not taken all|_TIMED_OUT|timed out|TimeoutError",
    schedule.BROKER: r"did not answer|has not taken all|_TIMED_OUT|timed out|TimeoutError|refused",
    # Until its job is made, a program has to do with Spark alone.
    schedule.JAVA: r"Java process does not answer|^while the job was made: ",
    # Outside of await_termination() Ctrl-C is Python's, and PySpark's, which cancels what runs.
    schedule.INTERRUPT: r"KeyboardInterrupt|cancelled|^while the job was made: ",
}
"""What a driver may fail with when something was done to it: anything else is reported."""
FOREVER: Final = 4
"""Starts in a row that fail before a batch: the stream is refused forever."""


SOON: Final = 3.0
"""Seconds in which a process that was killed is there again, mostly."""


class RefusedError(Exception):
    """A stream that no start goes on with."""


@dataclass(frozen=True)
class Place:
    """Where streams run: a disk, drivers, a broker, the weather, and where logs go."""

    disk: Disk
    nursery: Nursery
    broker: Broker | None
    weather: Weather | None
    logs: Path


class Stream:
    """A stream in its folder."""

    def __init__(self, name: str, seed: int, place: Place, tally: Tally) -> None:
        self.folder = place.disk.root / f"{name}-{seed}"
        self.folder.mkdir()
        self.steps = Steps(seed, SCENARIOS[name].habits)
        self._name, self._scenario, self._place, self._tally = name, SCENARIOS[name], place, tally
        self._chance = random.Random(seed)
        self._lives = schedule.lives(seed, self._means())
        self._feeding = self._fed()
        self._read = 0
        self._driver: Driver | None = None
        self._failed = 0
        #: seconds from a start to its first batch, as it was lately
        self._usual = 5.0
        #: what was done lately, which may excuse a failure
        self._lately: deque[str] = deque(maxlen=6)
        self._undo: list[tuple[float, Callable[[], object]]] = []

    def _means(self) -> Means:
        scenario, place = self._scenario, self._place
        return Means(
            "cluster" in scenario.master, scenario.receiver, scenario.broker, place.weather is not None, place.disk.can_be_full,
            scenario.restored,
        )  # fmt: skip

    def _fed(self) -> Files | Inputs:
        broker = self._place.broker
        if broker is not None and self._name == "kafka":
            broker.create(topic_of(self.folder, "out"))
        if broker is not None and self._scenario.receiver:
            return Inputs(self.folder, self.steps, broker, self._place.logs / f"{self.folder.name}-receiver.log")
        return Files(self.folder, self.steps)

    def run(self, kills: int) -> None:
        """Let the stream live until so many processes were killed, then let it end, and judge it."""
        began, before = time.monotonic(), self._tally.kills
        try:
            self._begin()
            while self._tally.kills - before < kills:
                self._live(next(self._lives))
            self._end()
        except (HungError, RefusedError) as error:
            self._tell_wrong(f"{self.folder.name}: {error}")
        except Exception:  # noqa: BLE001 - a fault of the campaign's own does not end it, and does not pass for a stream that is right
            self._tell_wrong(f"{self.folder.name}: the campaign has failed: {traceback.format_exc()}")
        finally:
            self._calm()
            if self._driver is not None:
                self._driver.end()
            self._feeding.close()
            self._tally.streams += 1
            self._tally.rows += self.steps.rows
            self._tally.seconds += time.monotonic() - began
            shutil.rmtree(self.folder, ignore_errors=True)

    def _tell_wrong(self, line: str) -> None:
        log.error("WRONG %s", line)
        self._tally.wrong.append(line)
        kept = self._place.logs / f"kept-{self.folder.name}-{len(self._tally.wrong)}"
        shutil.copytree(self.folder, kept, dirs_exist_ok=True)

    # -- what goes on all the time

    def _tick(self) -> None:
        now = time.monotonic()
        for at, undo in [one for one in self._undo if one[0] <= now]:
            self._undo.remove((at, undo))
            undo()
        if self._place.disk.is_full or schedule.SILENT in self._under_way():
            return
        if self._feeding.tick() and self.steps.rows - self._read < AHEAD * self._scenario.habits.size:
            self._feeding.feed()

    def _under_way(self) -> set[str]:
        return {getattr(undo, "kind", "") for _, undo in self._undo}

    def _calm(self) -> None:
        """End all that lasts."""
        while self._undo:
            self._undo.pop()[1]()
        self._place.disk.empty()

    def _hear(self, driver: Driver, received: tuple[str, Any]) -> str:
        kind, value = received
        if kind == BATCH:
            if driver.batches == 1:
                self._usual = (self._usual + time.monotonic() - driver.began) / 2
            self._read += value[1]
            self._tally.batches += 1
            self._failed = 0
        if kind == FAILED:
            self._judge(driver, *value)
        return kind

    def _judge(self, driver: Driver, is_refusal: bool, why: str) -> None:
        """Count a failure: as one that something that was done explains, or as one that nothing does."""
        kinds = [kind for kind in (*self._under_way(), *self._lately) if re.search(EXCUSES.get(kind, "$^"), why)]
        line = f"{self.folder.name}: {'refused: ' if is_refusal else ''}{why[:1_500]} (lately {', '.join(self._lately)}; {driver.log})"
        if kinds:
            self._tally.expected[kinds[0]] += 1
        else:
            log.error("UNEXPLAINED %s", line)
            self._tally.unexplained.append(line)
            self._failed += 1
        if self._failed >= FOREVER:
            raise RefusedError(f"{self._failed} starts in a row have failed, at last with: {why}")

    # -- drivers

    def _begin(self) -> None:
        """Let the first batch come in peace."""
        while self.steps.made < AHEAD // 2:
            self._tick()
        driver = self._started()
        self._until_batches(driver, 1)

    def _started(self, **more: Any) -> Driver:
        """Return a driver that runs the stream: the one that has failed or stopped, if its Spark is there, or the next."""
        driver = self._driver
        if driver is None or not driver.is_there:
            driver = self._driver = self._up()
        if not driver.is_running:
            self._run(driver, **more)
        return driver

    def _up(self) -> Driver:
        driver = self._place.nursery.take(self._scenario.master)
        while (received := driver.wait(self._tick))[0] != UP:
            if received[0] == FAILED:
                raise HungError(f"a driver does not start: {driver.log}")
        return driver

    def _run(self, driver: Driver, **more: Any) -> None:
        self._read = self._committed()
        broker = self._place.broker.address if self._place.broker is not None else ""
        driver.run(Task(self._name, self.folder, self._chance.randrange(1 << 30), broker, **more))
        self._tally.starts += 1

    def _committed(self) -> int:
        """Return how many rows the stream has read: so much is required of skypane, to know when it needs more."""
        with suppress(Exception):
            (last,) = Ledger(DocumentStore.at(str(self.folder / "checkpoint" / "skypane"))).history(1)
            return int(last["totals"]["read"])
        return self._read

    def _until_batches(self, driver: Driver, count: int) -> None:
        """Wait for so many batches, starting the driver again when it fails; HungError if nothing comes."""
        while driver.batches < count:
            if self._hear(driver, driver.wait(self._tick)) != BATCH:
                if not driver.is_there:
                    driver = self._driver = self._up()
                self._run(driver)

    # -- a life

    def _live(self, life: Life) -> None:
        if life.bit:
            self._flip()
        driver = self._started()
        if life.early is None:
            self._until_batches(driver, 1)
        else:
            self._let_pass(life.early * self._usual)
        for act in (*life.acts, life.end):
            self._let_pass(act.after)
            driver = self._started()
            self._lately.append(act.kind)
            log.info("%s %s", self.folder.name, act)
            done = getattr(self, f"_do_{act.kind.replace(' ', '_')}")(driver, act)
            if done is not False:
                self._tally.done[act.kind] += 1
        self._calm()

    def _let_pass(self, seconds: float) -> None:
        """Let a driver run for a while; start it again if it fails."""
        until = time.monotonic() + seconds
        while True:
            driver = self._started()
            received = driver.received()
            if received is not None:
                self._hear(driver, received)
            elif time.monotonic() >= until:
                return
            elif not driver.is_there:
                raise HungError(f"a driver has ended by itself: {driver.log}")
            elif not self._place.disk.is_full:
                driver.bear(driver.silence)
            self._tick()
            time.sleep(0.01)

    def _lasting(self, act: Act, undo: Callable[[], object]) -> None:
        """Undo something when its time is over."""

        def ended() -> None:
            undo()

        ended.kind = act.kind  # type: ignore[attr-defined]
        self._undo.append((time.monotonic() + act.seconds, ended))

    def _any(self, driver: Driver, kind: str) -> bool:
        """Kill one of a driver's processes; wait a while for one if there is none."""
        until = time.monotonic() + SOON
        while not (there := getattr(driver.family, kind)):
            if time.monotonic() > until or not driver.is_running:
                return False
            self._let_pass(0.1)
        return strike(self._chance.choice(there))

    def _do_worker(self, driver: Driver, _: Act) -> bool:
        return self._any(driver, "workers")

    def _do_daemon(self, driver: Driver, _: Act) -> bool:
        return self._any(driver, "daemons")

    def _do_executor(self, driver: Driver, _: Act) -> bool:
        return self._any(driver, "executors")

    def _do_receiver(self, _driver: Driver, _act: Act) -> None:
        assert self._feeding.receiver is not None
        self._feeding.receiver.kill()

    def _do_interrupt(self, driver: Driver, _: Act) -> None:
        """Ctrl-C, which is a stop."""
        strike(driver.python, signal.SIGINT)
        since, before = Silence(driver.python), driver.batches

        def tick() -> None:
            driver.bear(since, f"has not stopped after an interrupt, and has sent {driver.batches - before} batches,")
            self._tick()

        while driver.is_running:
            self._hear(driver, driver.wait(tick))

    def _do_slow_renames(self, _: Driver, act: Act) -> bool:
        return self._weather(act, slow=act.by)

    def _do_clock(self, _: Driver, act: Act) -> bool:
        return self._weather(act, ahead=act.by)

    def _weather(self, act: Act, **be: float) -> bool:
        weather = self._place.weather
        if weather is None or {schedule.SLOW, schedule.CLOCK} & self._under_way():
            return False
        weather.be(**be)
        self._lasting(act, weather.be)
        return True

    def _do_full_disk(self, _: Driver, act: Act) -> bool:
        disk = self._place.disk
        if disk.is_full:
            return False
        disk.fill(self._chance.choice([0, self._chance.randrange(200_000)]))
        self._lasting(act, disk.empty)
        return True

    def _do_silent_broker(self, _: Driver, act: Act) -> bool:
        broker = self._place.broker
        assert broker is not None
        assert broker.process is not None
        if schedule.SILENT in self._under_way():
            return False
        broker.process.send_signal(signal.SIGSTOP)
        self._lasting(act, lambda: strike(broker.process.pid, signal.SIGCONT) if broker.process else None)
        return True

    def _do_broker(self, _: Driver, __: Act) -> bool:
        broker = self._place.broker
        assert broker is not None
        if schedule.SILENT in self._under_way():
            return False
        broker.stop()
        broker.start()
        return True

    # -- how it ends

    def _do_driver(self, driver: Driver, _: Act) -> None:
        """Kill Python and Java at one stroke, and what belongs to them; workers end by themselves."""
        with suppress(ProcessLookupError):
            os.killpg(driver.python, signal.SIGKILL)
        self._driver = None
        driver.end()

    def _do_python(self, driver: Driver, _: Act) -> None:
        """Kill Python alone: Java works on for a while, beside the next driver."""
        there = driver.family
        strike(driver.python)
        self._driver = None
        self._lasting(Act("", 0.0, 5.0), lambda: [strike(one) for one in there.all if is_there(one)])

    def _do_java(self, driver: Driver, _: Act) -> None:
        """Kill Java: Python has to say so."""
        for java in driver.family.java:
            strike(java)
        while driver.is_running:
            self._hear(driver, driver.wait(self._tick))
        self._driver = None
        driver.end()

    def _do_freeze(self, driver: Driver, act: Act) -> None:
        """Stop a driver's clock, let another continue and be killed; the first, when it wakes, must end and change nothing."""
        frozen, second = self._frozen(driver), self._up()
        self._driver = second
        self._run(second)
        self._until_batches(second, 1)
        self._let_pass(act.seconds)
        second, self._driver = self._started(), None
        second.end()
        self._tally.done[schedule.DRIVER] += 1
        before = self._promised()
        self._wake(driver, frozen)
        self._until_ended(driver)
        changed = {path for path, what in before.items() ^ self._promised().items()}
        if changed:
            self._tell_wrong(
                f"{self.folder.name}: a driver that was taken over has changed {sorted(changed)[:5]} ({driver.log})"
            )

    def _do_meeting(self, driver: Driver, act: Act) -> None:
        """The same, but the second goes on while the first wakes."""
        frozen, second = self._frozen(driver), self._up()
        self._driver = second
        self._run(second)
        self._until_batches(second, 1)
        self._wake(driver, frozen)
        self._until_ended(driver)
        self._lately.append("meeting")
        self._let_pass(act.seconds)

    def _frozen(self, driver: Driver) -> tuple[int, ...]:
        """Stop a driver that is in charge: it has had a batch."""
        self._until_batches(driver, 1)
        driver = self._started()
        driver.end_orphans()
        frozen = driver.family.all
        self._calm()
        for process in frozen:
            strike(process, signal.SIGSTOP)
        return frozen

    def _wake(self, driver: Driver, frozen: tuple[int, ...]) -> None:
        for process in frozen:
            strike(process, signal.SIGCONT)
        driver.silence = Silence(driver.python)

    def _until_ended(self, driver: Driver) -> None:
        """Wait until a fenced driver reports it, then end it; its reports from before it was frozen come first."""
        try:
            self._until_refused(driver)
        finally:
            driver.end()

    def _until_refused(self, driver: Driver) -> None:
        while True:
            kind, value = driver.wait(self._tick)
            if kind == BATCH:
                continue
            if kind == FAILED and (value[0] or "concurrent" in value[1].lower()):
                self._tally.expected["taken over"] += 1
            else:
                self._tally.unexplained.append(
                    f"{self.folder.name}: a driver that was taken over: {kind} {value} ({driver.log})"
                )
                log.error("UNEXPLAINED taken over: %s %s", kind, value)
            return

    def _promised(self) -> dict[str, tuple[int, int]]:
        """Return the files that a fenced driver changes no more: when each was changed, and its size."""
        kept = self.folder / "checkpoint" / "skypane"
        folders = [kept / "ledger", *(self.folder / name for name in ("out", "late", "front"))]
        files = [path for folder in folders for path in _files(folder) if "_staging" not in path.parts]
        return {
            str(path.relative_to(self.folder)): _state(path)
            for path in (*files, kept / "definition.json")
            if path.exists()
        }

    # -- bits

    def _flip(self) -> None:
        """Flip a bit of the checkpoint: a start must refuse it, or never need it; then put back a copy."""
        if self._driver is not None:
            self._driver.end()
            self._driver = None
        self._calm()
        copy = self.folder.with_name("copy")
        shutil.copytree(self.folder, copy, ignore=shutil.ignore_patterns("in"))
        path = self._chance.choice([path for path in _files(self.folder / "checkpoint") if path.stat().st_size])
        whole = bytearray(path.read_bytes())
        at = self._chance.randrange(8 * len(whole))
        whole[at // 8] ^= 1 << at % 8
        path.write_bytes(whole)
        name = f"bit {at} of {path.relative_to(self.folder)}"
        log.info("%s %s", self.folder.name, name)
        self._tally.done[schedule.BIT] += 1
        driver = self._driver = self._up()
        self._run(driver)
        while driver.is_running and driver.batches < 6:
            kind, value = driver.wait(self._tick)
            if kind == BATCH:
                self._tally.batches += 1
                self._read += value[1]
            if kind == FAILED:
                self._judge_refusal(name, *value)
        if driver.is_running:
            self._tally.expected["never needed"] += 1
            for wrong in wrongs(self._name, self.folder, self.steps, "", whole=False):
                self._tell_wrong(f"{self.folder.name}: after a flip of {name}: {wrong}")
            self._driver = None
            driver.end()
        for path in self.folder.iterdir():
            if path.name != "in":
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.copytree(copy, self.folder, dirs_exist_ok=True)
        shutil.rmtree(copy)

    def _judge_refusal(self, name: str, is_refusal: bool, why: str) -> None:
        # Spark reads the state of its own operators when a batch needs it, and then refuses it.
        if is_refusal or "CheckpointError" in why or "Restore the whole checkpoint from a copy" in why:
            self._tally.expected["refused"] += 1
        else:
            self._tally.expected["failed otherwise"] += 1
            self._tally.unexplained.append(f"{self.folder.name}: {name}: {why[:1_500]}")
            log.error("UNEXPLAINED %s: %s", name, why[:1_500])

    # -- the end

    def _end(self) -> None:
        """Let a driver take all that is left, and drain; then judge."""
        if self._driver is not None:
            self._driver.end()
            self._driver = None
        self._calm()
        while not self._feeding.tick():
            time.sleep(0.01)
        while True:
            driver = self._started(last=True)
            kind = self._hear(driver, driver.wait(self._feeding.tick))
            if kind == DONE:
                break
            assert kind != STOPPED
        broker = self._place.broker.address if self._place.broker is not None else ""
        for wrong in wrongs(self._name, self.folder, self.steps, broker, whole=True):
            self._tell_wrong(f"{self.folder.name}: {wrong}")


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file())


def _state(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_mtime_ns, found.st_size
