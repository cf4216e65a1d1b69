"""Threads that alternate at a store: between two of their operations on files anything may happen, and a test says what."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Semaphore, Thread, get_ident
from typing import Any

import pytest

from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.stores.store import Kind

_OPERATIONS = ("make", "has", "move", "remove", "remove_folder", "open_output", "read_json")


class Interleaving:
    """Runs works side by side, one operation at a time: before each, `choose` says which of so many goes on."""

    def __init__(self, choose: Callable[[int], int]) -> None:
        self._choose = choose
        self._turns: dict[int, Semaphore] = {}
        #: notified when a thread waits for its turn, or ends
        self._waits = Semaphore(0)

    def run(self, *works: Callable[[], object]) -> None:
        with self._patched():
            running = [self._started(work) for work in works]
            while running:
                thread = running[self._choose(len(running))]
                self._turns[thread.ident or 0].release()
                self._waits.acquire()
                if thread.ident not in self._turns:
                    thread.join()
                    running.remove(thread)

    def _started(self, work: Callable[[], object]) -> Thread:
        def turns() -> None:
            try:
                self._turns[get_ident()] = Semaphore(0)
                self._turn()
                work()
            finally:
                del self._turns[get_ident()]
                self._waits.release()

        thread = Thread(target=turns, daemon=True)
        thread.start()
        self._waits.acquire()
        return thread

    def _turn(self) -> None:
        """Wait for the turn of this thread, if it is one of those that alternate."""
        if (mine := self._turns.get(get_ident())) is not None:
            self._waits.release()
            mine.acquire()

    @contextmanager
    def _patched(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            for name in _OPERATIONS:
                patch.setattr(DocumentStore, name, self._in_turn(getattr(DocumentStore, name)))
            patch.setattr(DocumentStore, "_listed", self._listed(DocumentStore._listed))
            chance = random.Random(0)  # names that are drawn are part of the order: the same turns give the same names
            patch.setattr(uuid, "uuid4", lambda: uuid.UUID(int=chance.getrandbits(128)))
            yield

    def _in_turn(self, operation: Callable[..., Any]) -> Callable[..., Any]:
        def taken(*args: Any) -> Any:
            self._turn()
            return operation(*args)

        return taken

    def _listed(self, listed: Callable[[DocumentStore, Kind], list[str]]) -> Callable[[DocumentStore, Kind], list[str]]:
        """List as an operating system may: what comes or goes in the meantime is not seen."""

        def part(store: DocumentStore, kind: Kind) -> list[str]:
            self._turn()
            before = listed(store, kind)
            self._turn()
            return sorted({*before} & {*listed(store, kind)})

        return part
