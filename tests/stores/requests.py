"""Requests of drivers to an object store, one after the other: between two of them anything may happen, and a test says what."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Semaphore, Thread, get_ident
from typing import Any, Final

import pytest

from skypane.runtime.stores.object_store import ObjectStore

OPERATIONS: Final = (
    "listed", "stamp", "read_stamped", "open_input", "open_output", "_put", "copy", "remove", "remove_folder",
)  # fmt: skip


@contextmanager
def before_each(do: Callable[[str], None], after: Callable[[str], None] = lambda _: None) -> Iterator[None]:
    """Call `do` before each request of this process, and `after` after it, with the name of the operation."""

    def wrapped(name: str, operation: Callable[..., Any]) -> Callable[..., Any]:
        def request(*args: Any) -> Any:
            do(name)
            result = operation(*args)
            after(name)
            return result

        return request

    with pytest.MonkeyPatch.context() as patch:
        for name in OPERATIONS:
            patch.setattr(ObjectStore, name, wrapped(name, getattr(ObjectStore, name)))
        yield


class Turns:
    """Runs works in threads, one request at a time: before each, `choose` says which of so many goes on."""

    def __init__(self, choose: Callable[[int], int]) -> None:
        self._choose = choose
        self._turns: dict[int, Semaphore] = {}
        #: notified when a thread waits for its turn, or ends
        self._waits = Semaphore(0)

    def run(self, *works: Callable[[], object]) -> None:
        with before_each(lambda _: self._turn()):
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
