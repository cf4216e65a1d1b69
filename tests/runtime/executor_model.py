"""A model of a cluster that starts and stops executors, for tests where Spark itself has none to give."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

from skypane.runtime.spark.machine.jvm_executors import ExecutorTasks


@dataclass
class Cluster:
    """A cluster of `size` executors, as Spark's CoarseGrainedSchedulerBackend and its standalone master treat requests.

    It starts as many as it can before a total is requested. A request that is lower than what is there stops none; a kill
    lowers the requested total if the executor is known and not leaving. Executors register and leave when step() says so.
    """

    size: int
    slots: int = 1
    total: int | None = None
    starting: list[str] = field(default_factory=list)
    there: list[str] = field(default_factory=list)
    leaving: list[str] = field(default_factory=list)
    busy: frozenset[str] = frozenset()
    killed: list[str] = field(default_factory=list)
    started: int = 0

    @classmethod
    def filled(cls, size: int, slots: int = 1) -> Self:
        """Return a cluster all of whose executors have registered, as before a query requests fewer."""
        cluster = cls(size, slots)
        cluster.step("starts")
        cluster.calm()
        return cluster

    def ids(self) -> list[str]:
        return [*reversed(self.there), *self.leaving]

    def tasks(self) -> dict[str, ExecutorTasks]:
        return {name: ExecutorTasks(int(name in self.busy), self.slots) for name in self.there}

    def request(self, total: int) -> None:
        self.total = total
        self._launch()

    def kill(self, executor: str) -> None:
        if executor not in self.there:
            return
        self.killed.append(executor)
        self.there.remove(executor)
        self.leaving.append(executor)
        if self.total is not None:
            self.total -= 1
        self._launch()

    def step(self, what: str) -> None:
        """Let the oldest of the starting ones register ("registers"), of the leaving ones leave ("leaves"), or the newest die."""
        if what == "registers" and self.starting:
            self.there.append(self.starting.pop(0))
        if what == "leaves" and self.leaving:
            self.leaving.pop(0)
        if what == "dies" and self.there:
            self.there.pop()
        self._launch()

    def calm(self) -> None:
        while self.starting or self.leaving:
            self.step("registers")
            self.step("leaves")

    def _launch(self) -> None:
        while len(self.starting) + len(self.there) < min(self.size, self.size if self.total is None else self.total):
            self.started += 1
            self.starting.append(str(self.started))
