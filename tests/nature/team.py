"""Streams of several scenarios that one driver runs side by side, driver after driver, each with the life that the schedule gives it.

So one kill of a driver is one of each of its streams, each of them somewhere else in a batch of its own. Then the oracle.
"""

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
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from tests.nature import schedule
from tests.nature.driver import ASLEEP, BATCH, DONE, FAILED, UP, Stand, Wake
from tests.nature.nursery import Driver, HungError
from tests.nature.processes import is_there, strike
from tests.nature.schedule import Act, Life, Means
from tests.nature.silence import Silence
from tests.nature.stream import Place, Stream
from tests.nature.tally import Tally

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
ENOUGH: Final = 6
"""Batches after which a bit that was flipped has not been needed."""


class Team:
    """Streams that one driver runs."""

    def __init__(self, names: Sequence[str], seed: int, place: Place, tallies: Mapping[str, Tally]) -> None:
        self._place, self._seed = place, seed
        self.streams = {one.name: one for one in (Stream(name, seed, place, tallies[name]) for name in names)}
        self._all = [*self.streams.values()]
        self._master = self._all[0].scenario.master
        self._chance = random.Random(seed)
        self._driver: Driver | None = None
        self._feeds = True
        #: what was done lately, which may excuse a failure
        self._lately: deque[str] = deque(maxlen=6)
        self._undo: list[tuple[float, Callable[[], object]]] = []

    @property
    def kills(self) -> int:
        """How many processes were killed, those of a driver once for each of its streams."""
        return sum(stream.tally.kills for stream in self._all)

    def _means(self) -> Means:
        scenarios, place = [stream.scenario for stream in self._all], self._place
        return Means(
            "cluster" in self._master, any(one.receiver for one in scenarios), any(one.broker for one in scenarios),
            place.weather is not None, place.disk.can_be_full, any(one.restored for one in scenarios),
        )  # fmt: skip

    def run(self, kills: int) -> None:
        """Let the streams live until so many processes were killed, then let them end, and judge them."""
        before, lives = self.kills, schedule.lives(self._seed, self._means())
        self._run((life for life in lives), lambda: self.kills - before >= kills, drains=self._chance.randrange(2))

    def run_at(self, lives: Iterable[Life], drains: int) -> None:
        """Let the streams have these lives, kill so many drivers in their drains, and judge them."""
        self._run(lives, lambda: False, drains)

    def _run(self, lives: Iterable[Life], is_enough: Callable[[], bool], drains: int) -> None:
        began = time.monotonic()
        try:
            self._begin()
            for life in lives:
                if is_enough() or not self._left:
                    break
                self._live(life)
            self._end(drains)
        except HungError as error:
            self._tell_wrong(self._all, str(error))
        except Exception:  # noqa: BLE001 - a fault of the campaign's own does not end it, and does not pass for streams that are right
            self._tell_wrong(self._all, f"the campaign has failed: {traceback.format_exc()}")
        finally:
            self._calm()
            if self._driver is not None:
                self._driver.end()
            for stream in self._all:
                stream.close((time.monotonic() - began) / len(self._all))

    @property
    def _left(self) -> list[Stream]:
        return [stream for stream in self._all if not stream.is_over]

    def _tell_wrong(self, streams: Sequence[Stream], what: str) -> None:
        """Note what is wrong with a stream; with several, what is wrong with one of them."""
        line = f"{', '.join(stream.name for stream in streams)}: {what}"
        log.error("WRONG %s", line)
        streams[0].tally.wrong.append(line)
        for stream in streams:
            kept = self._place.logs / f"kept-{stream.name}-{len(stream.tally.wrong)}"
            with suppress(shutil.Error):  # what is temporary vanishes meanwhile
                shutil.copytree(stream.folder, kept, dirs_exist_ok=True)

    # -- what goes on all the time

    def _tick(self) -> None:
        now = time.monotonic()
        for at, undo in [one for one in self._undo if one[0] <= now]:
            self._undo.remove((at, undo))
            undo()
        if not self._place.disk.is_full and schedule.SILENT not in self._under_way():
            for stream in self._all:
                stream.tick() if self._feeds else stream.fed()

    def _under_way(self) -> set[str]:
        return {getattr(undo, "kind", "") for _, undo in self._undo}

    def _calm(self) -> None:
        """End all that lasts."""
        while self._undo:
            self._undo.pop()[1]()
        self._place.disk.empty()

    def _hear(self, driver: Driver, received: tuple[str, str, Any]) -> str:
        kind, name, value = received
        if kind == BATCH:
            stream = self.streams[name]
            if driver.batches[name] == 1:
                stream.usual = (stream.usual + time.monotonic() - driver.began) / 2
            stream.committed(*value)
        elif kind == FAILED:
            for stream in [self.streams[name]] if name else self._left:
                self._judge(driver, stream, *value)
        return kind

    def _judge(self, driver: Driver, stream: Stream, is_refusal: bool, why: str) -> None:
        """Count a failure: as one that something that was done explains, or as one that nothing does."""
        kinds = [kind for kind in (*self._under_way(), *self._lately) if re.search(EXCUSES.get(kind, "$^"), why)]
        line = f"{stream.name}: {'refused: ' if is_refusal else ''}{why[:1_500]} (lately {', '.join(self._lately)}; {driver.log})"
        if kinds:
            stream.tally.expected[kinds[0]] += 1
        else:
            log.error("UNEXPLAINED %s", line)
            stream.tally.unexplained.append(line)
            stream.failed += 1
        if stream.failed >= FOREVER:
            self._tell_wrong([stream], f"{stream.failed} starts in a row have failed, at last with: {why}")
            stream.is_over = True

    # -- drivers

    def _begin(self) -> None:
        """Let the first batches come in peace."""
        while any(stream.steps.made < schedule.FIRST for stream in self._all):
            self._tick()
        self._until_batches(1)

    def _started(self, **more: Any) -> Driver:
        """Return a driver that runs all streams: the one that is there, in which some may have failed or stopped, or the next."""
        driver = self._driver
        if driver is None or not driver.is_there:
            driver = self._driver = self._up()
        for stream in self._left:
            if stream.name not in driver.running:
                self._start(driver, stream, **more)
        return driver

    def _up(self) -> Driver:
        driver = self._place.nursery.take(self._master)
        while (received := driver.wait(self._tick))[0] != UP:
            if received[0] == FAILED:
                raise HungError(f"a driver does not start: {driver.log}")
        return driver

    def _start(self, driver: Driver, stream: Stream, **more: Any) -> None:
        driver.run(stream.task(**more))
        stream.tally.starts += 1

    def _until_batches(self, count: int) -> Driver:
        """Wait for so many batches of each stream, starting what fails again; HungError if nothing comes."""
        while True:
            driver = self._started()
            if all(driver.batches[stream.name] >= count for stream in self._left):
                return driver
            self._hear(driver, driver.wait(self._tick))

    def _let_pass(self, seconds: float) -> None:
        """Let a driver run for a while; start again what fails."""
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

    # -- a life

    def _live(self, life: Life) -> None:
        if life.bit:
            self._flip()
        self._started()
        if life.early is None:
            self._until_batches(1)
        else:
            self._let_pass(life.early * self._chance.choice(self._left).usual)
        for act in (*life.acts, life.end):
            self._let_pass(act.after)
            if not self._left:
                return
            driver = self._started()
            self._lately.append(act.kind)
            log.info("%s %s", ", ".join(driver.running), act)
            running = [self.streams[name] for name in sorted(driver.running)]
            done = getattr(self, f"_do_{act.kind.replace(' ', '_')}")(driver, act)
            if done is not False:
                for stream in running if act.kind in schedule.OF_ALL else [self._chance.choice(self._all)]:
                    stream.tally.done[act.kind] += 1
        self._calm()
        self._judge_all(whole=False)

    def _judge_all(self, *, whole: bool) -> None:
        """Judge what was acknowledged, while the driver stands still, if there is one: it would write between two looks."""
        while [stream for stream in self._left if not stream.fed()]:
            time.sleep(0.01)
        driver = self._driver
        standing = driver.family.all if driver is not None and driver.is_there else ()
        for process in standing:
            strike(process, signal.SIGSTOP)
        for stream in self._left:
            for wrong in stream.wrongs(whole=whole):
                self._tell_wrong([stream], wrong)
        for process in standing:
            strike(process, signal.SIGCONT)

    def _lasting(self, act: Act, undo: Callable[[], object]) -> None:
        """Undo something when its time is over."""

        def ended() -> None:
            undo()
            self._lately.append(act.kind)  # a driver may report later what it has met before

        ended.kind = act.kind  # type: ignore[attr-defined]
        self._undo.append((time.monotonic() + act.seconds, ended))

    def _any(self, driver: Driver, kind: str) -> bool:
        """Kill one of a driver's processes; wait a while for one if there is none."""
        until = time.monotonic() + SOON
        while not (there := getattr(driver.family, kind)):
            if time.monotonic() > until or not driver.running:
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
        next(stream for stream in self._all if stream.scenario.receiver).kill_receiver()

    def _do_interrupt(self, driver: Driver, _: Act) -> None:
        """Ctrl-C, which is a stop of all that runs."""
        strike(driver.python, signal.SIGINT)
        since, before = Silence(driver.python), driver.batches.total()

        def tick() -> None:
            driver.bear(
                since, f"has not stopped after an interrupt, and has sent {driver.batches.total() - before} batches,"
            )
            self._tick()

        while driver.running:
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

    def _do_place(self, driver: Driver, act: Act) -> None:
        """The same, when each stream stands still at its place."""
        self._stand_still(driver, act)
        self._do_driver(driver, act)

    def _stand_still(self, driver: Driver, act: Act) -> None:
        """Have each stream stand still at a place, and wait until all do: one that fails before has come to none."""
        assert act.place is not None
        left = {stream.name for stream in self._left}
        for number, stream in enumerate(self._all):
            if stream.name in left:
                driver.request(Stand(stream.folder, stream.place(act.place + number)))
        while left & driver.running:
            received = driver.wait(self._tick)
            if self._hear(driver, received) in {ASLEEP, FAILED}:
                left.discard(received[1])

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
        while driver.running:
            self._hear(driver, driver.wait(self._tick))
        self._driver = None
        driver.end()

    def _do_freeze(self, driver: Driver, act: Act) -> None:
        """Stop a driver's clock, let another continue and be killed; the first, when it wakes, must end and change nothing."""
        taken, frozen = self._frozen(driver, act)
        self._driver = self._up()
        self._until_batches(1)
        self._let_pass(act.seconds)
        second, self._driver = self._started(), None
        second.end()
        for stream in self._left:
            stream.tally.done[schedule.DRIVER] += 1
        before = {stream.name: stream.promised() for stream in self._left}
        self._wake(driver, frozen)
        self._until_ended(driver, taken)
        for stream in self._left:
            changed = {path for path, what in before[stream.name].items() ^ stream.promised().items()}
            if changed:
                self._tell_wrong(
                    [stream], f"a driver that was taken over has changed {sorted(changed)[:5]} ({driver.log})"
                )

    def _do_meeting(self, driver: Driver, act: Act) -> None:
        """The same, but the second goes on while the first wakes."""
        taken, frozen = self._frozen(driver, act)
        self._driver = self._up()
        self._until_batches(1)
        self._wake(driver, frozen)
        self._until_ended(driver, taken)
        self._lately.append("meeting")
        self._let_pass(act.seconds)

    def _frozen(self, driver: Driver, act: Act) -> tuple[set[str], tuple[int, ...]]:
        """Stop a driver that is in charge, since it has had batches; return what it runs, and its processes."""
        driver = self._until_batches(1)
        if act.place is not None:
            self._stand_still(driver, act)
        driver.end_orphans()
        frozen = driver.family.all
        self._calm()
        for process in frozen:
            strike(process, signal.SIGSTOP)
        return set(driver.running), frozen

    def _wake(self, driver: Driver, frozen: tuple[int, ...]) -> None:
        for process in frozen:
            strike(process, signal.SIGCONT)
        driver.request(Wake())
        driver.silence = Silence(driver.python)

    def _until_ended(self, driver: Driver, taken: set[str]) -> None:
        """Wait until a fenced driver reports it of each stream, then end it; reports from before it was frozen come first."""
        try:
            while taken:
                kind, name, value = driver.wait(self._tick)
                if kind in {BATCH, ASLEEP}:
                    continue
                stream = self.streams.get(name, self._all[0])
                if kind == FAILED and (value[0] or "concurrent" in value[1].lower()):
                    stream.tally.expected["taken over"] += 1
                else:
                    stream.tally.unexplained.append(
                        f"{name}: a driver that was taken over: {kind} {value} ({driver.log})"
                    )
                    log.error("UNEXPLAINED taken over: %s %s %s", name, kind, value)
                taken = taken - {name} if name else set()
        finally:
            driver.end()

    # -- bits

    def _flip(self) -> None:
        """Flip a bit of a checkpoint: a start must refuse it, or never need it; then put back a copy."""
        self._end_driver()
        stream = self._chance.choice([stream for stream in self._left if stream.scenario.restored])
        name = stream.flip()
        log.info("%s %s", stream.name, name)
        stream.tally.done[schedule.BIT] += 1
        driver = self._driver = self._up()
        self._start(driver, stream)
        while driver.running and driver.batches[stream.name] < ENOUGH:
            kind, _, value = driver.wait(self._tick)
            if kind == BATCH:
                stream.committed(*value)
            if kind == FAILED:
                self._judge_refusal(stream, name, *value)
        if driver.running:
            stream.tally.expected["never needed"] += 1
            for wrong in stream.wrongs(whole=False):
                self._tell_wrong([stream], f"after a flip of {name}: {wrong}")
        self._end_driver()
        stream.restore()

    def _judge_refusal(self, stream: Stream, name: str, is_refusal: bool, why: str) -> None:
        # Spark reads the state of its own operators when a batch needs it, and then refuses it.
        if is_refusal or "CheckpointError" in why or "Restore the whole checkpoint from a copy" in why:
            stream.tally.expected["refused"] += 1
        else:
            stream.tally.expected["failed otherwise"] += 1
            stream.tally.unexplained.append(f"{stream.name}: {name}: {why[:1_500]}")
            log.error("UNEXPLAINED %s: %s", name, why[:1_500])

    def _end_driver(self) -> None:
        if self._driver is not None:
            self._driver.end()
            self._driver = None
        self._calm()

    # -- the end

    def _end(self, drains: int) -> None:
        """Let drivers take all that is left, and drain, of which the first ones are killed in their drains; then judge."""
        self._end_driver()
        self._feeds = False  # what came after a drain would be late
        for stream in self._all:
            while not stream.fed():
                time.sleep(0.01)
        for number in range(drains):
            driver = self._driver = self._driver or self._up()
            for at, stream in enumerate(self._left):
                self._start(driver, stream, last=True, place=stream.place_of_drain(number + at), begun=number > 0)
            self._until(driver, ASLEEP, last=True)
            for stream in self._left:
                stream.tally.done[schedule.PLACE] += 1
            self._do_driver(driver, Act(schedule.PLACE, 0.0))
        driver = self._started(last=True)
        self._until(driver, DONE, last=True)
        self._judge_all(whole=True)
        for stream in self._left:
            stream.is_over = True

    def _until(self, driver: Driver, wanted: str, **more: Any) -> None:
        """Wait until each stream says so; one that fails is started again."""
        left = {stream.name for stream in self._left}
        while left:
            kind, name, _ = received = driver.wait(self._tick)
            self._hear(driver, received)
            if kind in {wanted, DONE}:
                left.discard(name)
            elif kind == FAILED and not driver.is_there:
                raise HungError(f"a driver has ended by itself: {driver.log}")
            elif kind == FAILED and name in left:
                self._start(driver, self.streams[name], **more)
            left &= {stream.name for stream in self._left}
