"""Bring the executors of an application to a number: request those that are missing, release those beyond."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any, Protocol

from skypane.runtime.spark.machine.jvm_executors import ExecutorTasks


class ExecutorCalls(Protocol):
    """The calls of JvmExecutors."""

    def ids(self) -> list[str]: ...

    def tasks(self) -> dict[str, ExecutorTasks]: ...

    def request(self, total: int) -> None: ...

    def kill(self, executor: str) -> None: ...


class ExecutorRequests:
    """The executors of one application, for which all its queries that follow ask together.

    calls   the calls to Spark
    slots   tasks that an executor runs at once, as far as settings say; what Spark shows of an executor replaces it
    """

    def __init__(self, calls: ExecutorCalls, slots: int = 1) -> None:
        self._calls = calls
        self._slots = slots
        self._lock = Lock()
        #: the executors that each query needs, and whether it still runs
        self._needs: dict[Any, tuple[int, Callable[[], bool]]] = {}
        #: executors that were killed and are still listed
        self._leaving: set[str] = set()
        self._requested: int | None = None
        self._shown = False

    @property
    def there(self) -> int:
        """The number of executors that are there, without those that were released."""
        with self._lock:
            return len(self._staying())

    @property
    def slots(self) -> int:
        """Tasks that an executor runs at once; all executors of an application are alike."""
        with self._lock:
            if not self._shown and (shown := self._calls.tasks()):
                self._slots, self._shown = max(1, *(one.slots for one in shown.values())), True
            return self._slots

    def bring_to(self, query: Any, executors: int, runs: Callable[[], bool]) -> None:
        """Request as many executors as this query and the other ones that still run need together."""
        with self._lock:
            others = {key: need for key, need in self._needs.items() if key is not query and need[1]()}
            self._needs = {**others, query: (executors, runs)}
            self._bring_to(sum(needed for needed, _ in self._needs.values()))

    def _bring_to(self, total: int) -> None:
        staying = self._staying()
        beyond = len(staying) - total
        if beyond > 0:
            # Those beyond are not replaced only if the requested total is not above what is there while they leave.
            self._calls.request(len(staying))
            for executor in self._least_useful(staying)[:beyond]:
                self._calls.kill(executor)
                self._leaving.add(executor)
        if beyond > 0 or total != self._requested:
            self._calls.request(total)
            self._requested = total

    def _staying(self) -> list[str]:
        """Return the executors that are there and stay, in the order in which they were started."""
        listed = self._calls.ids()
        self._leaving &= set(listed)
        return sorted(set(listed) - self._leaving, key=lambda name: (len(name), name))

    def _least_useful(self, executors: list[str]) -> list[str]:
        """Return executors without a task first, and the newest of them first: the oldest have loaded what they need."""
        tasks = self._calls.tasks()
        running = {name: name in tasks and tasks[name].running > 0 for name in executors}
        newest_first = executors[::-1]
        return sorted(newest_first, key=running.__getitem__)
