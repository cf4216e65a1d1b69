"""Receive all inputs of a list concurrently; an input that fails is retried and delays no other."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import threading
from asyncio import Task
from collections.abc import Coroutine, Mapping
from concurrent.futures import Future
from functools import partial, reduce
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

from skypane.addresses import HIDDEN
from skypane.naming import shortened
from skypane.runtime.environment import held, held_line
from skypane.runtime.receiving import http, mqtt, tcp
from skypane.runtime.receiving.group_commit import GroupCommit, NamedTopic
from skypane.runtime.receiving.input_list import Connect, Http, Listen, Mqtt, Received, ReceivedInputs
from skypane.runtime.receiving.log import FolderLock, SegmentLog
from skypane.runtime.receiving.merge_commit import MERGED, REJECTED
from skypane.runtime.receiving.merge_task import MergeTask
from skypane.runtime.receiving.open_logs import OpenLogs, most_clients, most_open
from skypane.runtime.receiving.receiver_status import RECEIVING, MergeStatus, ReceivedInput
from skypane.runtime.receiving.retention import remove_merged, remove_passed
from skypane.types import ConfigError, SkypaneError

log = logging.getLogger(__name__)

FIRST_WAIT, LONGEST_WAIT = 0.5, 60.0
"""First and longest wait in seconds before a failed input is retried; it doubles until the input receives again."""

TIDY_EVERY = 60.0
"""Seconds between checks for segments that all readers have passed."""

_OPEN = (
    "input %s: any client that reaches %s may send to it, since clients are not authenticated; listen on 127.0.0.1, or "
    "set certificate and ca to admit only clients with a certificate of that authority"
)
_LONGEST_NAME = 200
REJECTED_TOPICS = ".rejected"
"""The log of messages of topics beyond most_topics, in the folder of an input: no log of a topic begins with a dot."""
_SHORTEST_SECRET = 4


class Receiver:
    """Receives inputs in its own thread from start() until stop().

    given        the inputs: ReceivedInputs, or a mapping as loaded from YAML
    environment  environment variables, where secrets are looked up by name

        with Receiver({"folder": "received", "inputs": [{"name": "basel", "listen": "localhost:7001"}]}) as receiving:
            ...

    Raises ConfigError if the list is invalid, a secret is not set, or a client library is not installed.
    """

    def __init__(self, given: ReceivedInputs | Mapping[str, Any], environment: Mapping[str, str] = os.environ) -> None:
        self.receipts = given if isinstance(given, ReceivedInputs) else ReceivedInputs.of(given)
        self._environment = environment
        for one in self.receipts.inputs:
            _check(one, environment)
        self._intakes: dict[str, GroupCommit] = {}
        self._most_clients = most_clients(max(1, sum(isinstance(one, Listen) for one in self.receipts.inputs)))
        by_topic = [one.name for one in self.receipts.inputs if isinstance(one, Mqtt) and one.by_topic]
        self._topics = {name: OpenLogs(self._opened, max(most_open() // len(by_topic), 1)) for name in by_topic}
        #: names of the logs of topics, by input
        self._known: dict[str, set[str]] = {}
        self._seen: dict[str, ReceivedInput] = {}
        self._holds: list[FolderLock] = []
        self._merge: MergeTask | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread: threading.Thread | None = None
        #: done when the folders are locked
        self._ready: Future[None] = Future()

    @property
    def seen(self) -> list[ReceivedInput]:
        """The status of each input, in the order of names."""
        return [self._seen[name] for name in sorted(self._seen)]

    @property
    def merged(self) -> MergeStatus | None:
        """The status of the merge by time; None without one."""
        return None if self._merge is None else self._merge.status

    def start(self) -> Self:
        """Lock the folders and start; raise ConfigError if a folder is locked by another receiver or not writable."""
        for one in self.receipts.inputs:
            if isinstance(one, Listen) and one.is_open:
                log.warning(_OPEN, one.name, one.listen)
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="skypane receive", daemon=True)
        self._thread.start()
        self._ready.result()
        return self

    def stop(self) -> None:
        """Write and acknowledge all received messages, then unlock all folders; returns when this is done."""
        if self._loop is not None and self._stop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stop.set)
        if self._thread is not None:
            self._thread.join()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_error: object) -> None:
        self.stop()

    async def _run(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        tasks: list[Task[None]] = []
        try:
            try:
                started = [self._begun(one) for one in self.receipts.inputs]
                self._begin_merge()
            except BaseException as error:  # noqa: BLE001 - start() raises it
                self._ready.set_exception(error)
                return
            tasks = [asyncio.create_task(one) for one in (*started, self._tidied())]
            if self._merge is not None:
                self._merge.start()
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
            if self._merge is not None:
                await self._merge.stop()
            for hold in self._holds:
                hold.release()

    def _begun(self, one: Received) -> Coroutine[Any, Any, None]:
        """Lock the folder of an input, and return the coroutine that receives it."""
        if isinstance(one, Mqtt) and one.by_topic:
            folder = Path(self.receipts.folder, one.name)
            self._holds.append(FolderLock(folder))
            self._known[one.name] = {f"{one.name}/{there.name}" for there in folder.iterdir()
                                     if there.is_dir() and there.name != REJECTED_TOPICS}  # fmt: skip
            self._seen[one.name] = ReceivedInput(one.name)
        else:
            self._intake(one.name)
        return self._kept_up(one, self._seen[one.name])

    def _begin_merge(self) -> None:
        if (order := self.receipts.merge) is not None:
            from skypane.runtime.receiving.merged_log import MergedLog  # noqa: PLC0415 - loads Numba

            names = [one.name for one in self.receipts.inputs]
            merged = MergedLog(Path(self.receipts.folder), names, order, self.receipts.segment_bytes)
            self._merge = MergeTask(merged, lambda: {name: one.log.end for name, one in self._intakes.items()})

    def _intake(self, name: str) -> GroupCommit:
        if name not in self._intakes:
            self._intakes[name] = self._opened(name)
        return self._intakes[name]

    def _opened(self, name: str) -> GroupCommit:
        segments = SegmentLog(Path(self.receipts.folder, name), self.receipts.segment_bytes)
        return GroupCommit(segments, self._seen.setdefault(name, ReceivedInput(name)))

    def _intake_of(self, one: Mqtt, topic: str) -> GroupCommit | NamedTopic | None:
        if not one.by_topic:
            return self._intake(one.name)
        name, known = _named(one.name, topic), self._known[one.name]
        if name not in known and len(known) >= one.most_topics:
            return self._rejected_topic(one, topic)
        known.add(name)
        return self._topics[one.name].of(name)

    def _rejected_topic(self, one: Mqtt, topic: str) -> NamedTopic:
        """Return the intake of a topic beyond most_topics, whose messages hold up no other topic."""
        name = f"{one.name}/{REJECTED_TOPICS}"
        if name not in self._intakes:
            log.warning(
                "input %s: topic %s exceeds most_topics, as there are %d topics: its messages, and those of other new topics, are in "
                "the log %s; narrow the filter %r, or raise most_topics",
                one.name, shortened(repr(topic)), one.most_topics, Path(self.receipts.folder, name), one.topic,
            )  # fmt: skip
        return NamedTopic(topic, self._intake(name))

    async def _kept_up(self, one: Received, seen: ReceivedInput) -> None:
        """Receive one input, and restart it when it ends or fails; waits double until the input receives again."""
        wait, secrets = FIRST_WAIT, _secrets(one, self._environment)
        while True:
            try:
                await self._received(one)
            except Exception as error:  # noqa: BLE001 - reported in the status; the other inputs continue
                if seen.state == RECEIVING:
                    wait = FIRST_WAIT
                seen.failed(reduce(lambda text, secret: text.replace(secret, HIDDEN), secrets, _reason(error)))
                log.warning("input %s: %s", one.name, seen.reason)
                await asyncio.sleep(max(wait, getattr(error, "wait", None) or 0.0))
                wait = min(2 * wait, LONGEST_WAIT)

    async def _received(self, one: Received) -> None:
        match one:
            case Listen():
                await tcp.listen(one, self._intake(one.name), min(one.most_clients, self._most_clients))
            case Connect():
                await tcp.connect(one, self._intake(one.name))
            case Mqtt():
                await mqtt.subscribe(one, self._seen[one.name], partial(self._intake_of, one), self._environment)
            case Http():
                await http.poll(one, self._intake(one.name), self._environment)

    async def _tidied(self) -> None:
        """Remove segments that all readers have passed, every TIDY_EVERY seconds, if readers are listed."""
        while self.receipts.read_by:
            for name in [*sorted(self._seen), *([MERGED, REJECTED] if self._merge else [])]:
                await asyncio.to_thread(self._tidy, name)
            await asyncio.sleep(TIDY_EVERY)

    def _tidy(self, name: str) -> None:
        folder = Path(self.receipts.folder, name)
        try:
            if self._merge is not None and name in self._seen:
                gone = remove_merged(folder, self._merge.at.get(name, 0))
            else:
                gone = remove_passed(folder, [Path(one) for one in self.receipts.read_by])
        except (SkypaneError, OSError) as error:
            log.warning("cannot remove segments of %s: %s", folder, error)
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
                held_line(value, f"header {name}", environment)
    except ConfigError as error:
        raise ConfigError(f"input {one.name}: {error}") from None


def _secrets(one: Received, environment: Mapping[str, str]) -> list[str]:
    """Return what no reason shows: the values that are sent to a server, which may repeat them, and their last words."""
    named = [*one.headers.values()] if isinstance(one, Http) else [one.password] if isinstance(one, Mqtt) else []
    values = [held(name, "secret", environment) for name in named if name is not None]
    return [part for value in values for part in (value, value.rpartition(" ")[2]) if len(part) >= _SHORTEST_SECRET]


def _named(name: str, topic: str) -> str:
    """Return the log's name for a topic: the input's name, a slash, and the topic quoted as one folder name."""
    quoted = quote(topic, safe="").replace(".", "%2E")  # "." and ".." are topics as well
    if len(quoted) > _LONGEST_NAME:
        quoted = f"{quoted[: _LONGEST_NAME // 2]}-{hashlib.sha256(topic.encode()).hexdigest()[:32]}"
    return f"{name}/{quoted}"


def _reason(error: Exception) -> str:
    """Return the text of an error; for errors of the system only their description, without numbers and addresses."""
    if isinstance(error, TimeoutError):
        return "it does not answer"
    strerror = getattr(error, "strerror", None)
    return str(strerror) if strerror else str(error) or type(error).__name__
