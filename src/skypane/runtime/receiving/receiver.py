"""All inputs of a list received at once, each by itself: what fails is tried again, and holds up no other."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import threading
from asyncio import Task
from collections.abc import Coroutine, Mapping
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from skypane.naming import shortened
from skypane.runtime.environment import held
from skypane.runtime.receiving import http, mqtt, tcp
from skypane.runtime.receiving.hold import Hold
from skypane.runtime.receiving.inputs import Connect, Http, Listen, Mqtt, Receipts, Received
from skypane.runtime.receiving.intake import Intake
from skypane.runtime.receiving.log import SegmentLog
from skypane.runtime.receiving.open_logs import OpenLogs, most_open
from skypane.runtime.receiving.retention import remove_passed
from skypane.runtime.receiving.seen import RECEIVING, Seen
from skypane.types import ConfigError, SkypaneError
from skypane.wording import count

log = logging.getLogger(__name__)

FIRST_WAIT, LONGEST_WAIT = 0.5, 60.0
"""Seconds until an input that has failed is tried again: doubled each time until it has answered."""

TIDY_EVERY = 60.0
"""Seconds between looks for segments that all readers have passed."""

_OPEN = (
    "input %s: whoever reaches %s may send to it, since no one is asked who he is: listen on 127.0.0.1, or name certificate and "
    "ca to let in only clients with a certificate of that authority"
)
_LONGEST_NAME = 200


class Receiver:
    """Receives in a thread of its own from start() until stop().

    given        what to receive: Receipts, or a mapping as it comes from YAML
    environment  where secrets are looked up by name

        with Receiver({"folder": "received", "inputs": [{"name": "basel", "listen": "localhost:7001"}]}) as receiving:
            ...

    Raises ConfigError for what cannot be: a secret that is not set, a client that is not installed.
    """

    def __init__(self, given: Receipts | Mapping[str, Any], environment: Mapping[str, str] = os.environ) -> None:
        self.receipts = given if isinstance(given, Receipts) else Receipts.of(given)
        self._environment = environment
        for one in self.receipts.inputs:
            _check(one, environment)
        self._intakes: dict[str, Intake] = {}
        by_topic = [one.name for one in self.receipts.inputs if isinstance(one, Mqtt) and one.by_topic]
        self._topics = {name: OpenLogs(self._opened, max(most_open() // len(by_topic), 1)) for name in by_topic}
        #: the logs of topics that there are, by input
        self._known: dict[str, set[str]] = {}
        self._seen: dict[str, Seen] = {}
        self._holds: list[Hold] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread: threading.Thread | None = None
        #: done when the folders are taken
        self._ready: Future[None] = Future()

    @property
    def seen(self) -> list[Seen]:
        """What is to be said of each input, in the order of their names."""
        return [self._seen[name] for name in sorted(self._seen)]

    def start(self) -> Self:
        """Take the folders and begin; ConfigError if another receiver has one of them, or it cannot be written."""
        for one in self.receipts.inputs:
            if isinstance(one, Listen) and one.is_open:
                log.warning(_OPEN, one.name, one.listen)
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="skypane receive", daemon=True)
        self._thread.start()
        self._ready.result()
        return self

    def stop(self) -> None:
        """Write what has been taken, acknowledge it, let go of all folders; done when this returns."""
        if self._loop is not None and self._stop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stop.set)
        if self._thread is not None:
            self._thread.join()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def _run(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        tasks: list[Task[None]] = []
        try:
            try:
                started = [self._begun(one) for one in self.receipts.inputs]
            except BaseException as error:  # noqa: BLE001 - told by start()
                self._ready.set_exception(error)
                return
            tasks = [asyncio.create_task(one) for one in (*started, self._tidied())]
            self._ready.set_result(None)
            await self._stop.wait()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for intake in self._intakes.values():
                await intake.close()
            for topics in self._topics.values():
                await topics.close()
            for hold in self._holds:
                hold.release()

    def _begun(self, one: Received) -> Coroutine[Any, Any, None]:
        """Take the folder of an input, and return what receives it."""
        if isinstance(one, Mqtt) and one.by_topic:
            folder = Path(self.receipts.folder, one.name)
            self._holds.append(Hold(folder))
            self._known[one.name] = {f"{one.name}/{there.name}" for there in folder.iterdir() if there.is_dir()}
            self._seen[one.name] = Seen(one.name)
        else:
            self._intake(one.name)
        return self._kept_up(one, self._seen[one.name])

    def _intake(self, name: str) -> Intake:
        if name not in self._intakes:
            self._intakes[name] = self._opened(name)
        return self._intakes[name]

    def _opened(self, name: str) -> Intake:
        segments = SegmentLog(Path(self.receipts.folder, name), self.receipts.segment_bytes)
        return Intake(segments, self._seen.setdefault(name, Seen(name)))

    def _intake_of(self, one: Mqtt, topic: str) -> Intake | None:
        if not one.by_topic:
            return self._intake(one.name)
        name = _named(one.name, topic)
        self._check_topic(one, topic, name)
        return self._topics[one.name].of(name)

    def _check_topic(self, one: Mqtt, topic: str, name: str) -> None:
        """Raise ConfigError if it would be one more topic than its input may have."""
        known = self._known[one.name]
        if name not in known and len(known) >= one.most_topics:
            raise ConfigError(
                f"there are {count(len(known))} topics, and {shortened(repr(topic))} would be one more than most_topics: "
                f"narrow the filter {one.topic!r}, or let there be more of them"
            )
        known.add(name)

    async def _kept_up(self, one: Received, seen: Seen) -> None:
        """Receive one input; what ends or fails is begun again, later each time until it has answered."""
        wait = FIRST_WAIT
        while True:
            try:
                await self._received(one)
            except Exception as error:  # noqa: BLE001 - it is told, and the other inputs go on
                if seen.state == RECEIVING:
                    wait = FIRST_WAIT
                seen.failed(_sentence(error))
                log.warning("input %s: %s", one.name, seen.reason)
                await asyncio.sleep(max(wait, getattr(error, "wait", None) or 0.0))
                wait = min(2 * wait, LONGEST_WAIT)

    async def _received(self, one: Received) -> None:
        match one:
            case Listen():
                await tcp.listen(one, self._intake(one.name))
            case Connect():
                await tcp.connect(one, self._intake(one.name))
            case Mqtt():
                await mqtt.subscribe(one, self._seen[one.name], partial(self._intake_of, one), self._environment)
            case Http():
                await http.poll(one, self._intake(one.name), self._environment)

    async def _tidied(self) -> None:
        """Remove now and then what all readers have passed, if they are named."""
        while self.receipts.read_by:
            for name in sorted(self._seen):
                await asyncio.to_thread(self._tidy, Path(self.receipts.folder, name))
            await asyncio.sleep(TIDY_EVERY)

    def _tidy(self, folder: Path) -> None:
        try:
            gone = remove_passed(folder, [Path(one) for one in self.receipts.read_by])
        except (SkypaneError, OSError) as error:
            log.warning("nothing is removed of %s: %s", folder, error)
            return
        if gone:
            log.info(
                "removed %d segments of %s up to byte %d: all its readers have passed them",
                len(gone),
                folder,
                gone[-1].end,
            )


def _check(one: Received, environment: Mapping[str, str]) -> None:
    try:
        one.context(server=isinstance(one, Listen))
        if isinstance(one, Mqtt):
            mqtt.check(one, environment)
        elif isinstance(one, Http):
            for name, value in one.headers.items():
                held(value, f"header {name}", environment)
    except ConfigError as error:
        raise ConfigError(f"input {one.name}: {error}") from None


def _named(name: str, topic: str) -> str:
    """Return the folder of a topic: below that of the input, written so that it is one name."""
    quoted = quote(topic, safe="").replace(".", "%2E")  # "." and ".." are topics as well
    if len(quoted) > _LONGEST_NAME:
        quoted = f"{quoted[: _LONGEST_NAME // 2]}-{hashlib.sha256(topic.encode()).hexdigest()[:32]}"
    return f"{name}/{quoted}"


def _sentence(error: Exception) -> str:
    """Return what went wrong; of the system's errors their own words, without numbers and addresses."""
    if isinstance(error, TimeoutError):
        return "it does not answer"
    strerror = getattr(error, "strerror", None)
    return str(strerror) if strerror else str(error) or type(error).__name__
