"""Kernels as plain Python, whose threads may alternate at each atomic; and a scheduler that enumerates the orders.

On two cores a compare-and-swap hardly ever fails: plain stress proves little. Here the scheduler chooses at each atomic
operation which thread runs next. Between two of them a thread runs alone, which is how sequentially consistent atomics may be thought of.
"""

from __future__ import annotations

import inspect
import threading
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations, product
from typing import Any

from skypane_papers.multiway.kernels import atomics

Choice = Callable[[int, int, Sequence[int]], int]
"""Step, the thread that is running, and all that can: which goes on."""


class StuckError(AssertionError):
    """The programs have taken more steps than they may."""


class Scheduler:
    """Runs programs in threads of which one runs at a time; `choose` says which, at every atomic operation."""

    def __init__(self, choose: Choice, most: int = 20_000) -> None:
        self._choose = choose
        self._most = most
        self._turns: list[threading.Semaphore] = []
        self._running: list[int] = []
        self._current = -1
        self._errors: list[BaseException] = []
        self.steps = 0

    def run(self, programs: Sequence[Callable[[], None]]) -> None:
        """Run all programs to their end."""
        self._turns = [threading.Semaphore(0) for _ in programs]
        self._running = list(range(len(programs)))
        self._current = 0
        threads = [threading.Thread(target=self._body, args=(number, body)) for number, body in enumerate(programs)]
        for thread in threads:
            thread.start()
        self._turns[0].release()
        for thread in threads:
            thread.join()
        for error in self._errors:
            raise error

    def turn(self) -> None:
        """Let another thread go on, if it is its turn."""
        if self._current < 0 or self._errors:  # outside of a run: programs are being set up or stopped
            return
        mine = self._current
        self.steps += 1
        if self.steps > self._most:
            raise StuckError(f"{self._most} steps, and no end")
        self._hand_over(mine, self._choose(self.steps, mine, self._running))

    def give_way(self) -> None:
        """Let another thread go on: this one cannot."""
        mine = self._current
        self.steps += 1
        others = [thread for thread in self._running if thread != mine]
        if self.steps > self._most or not others:
            raise StuckError(f"a thread waits for ever, after {self.steps} steps")
        self._hand_over(mine, others[self.steps % len(others)])

    def _hand_over(self, mine: int, chosen: int) -> None:
        if chosen != mine:
            self._current = chosen
            self._turns[chosen].release()
            self._turns[mine].acquire()

    def _body(self, number: int, body: Callable[[], None]) -> None:
        self._turns[number].acquire()
        try:
            body()
        except BaseException as error:  # noqa: BLE001 - raised by run()
            self._errors.append(error)
        self._running.remove(number)
        if self._running:
            self._current = self._running[0]
            self._turns[self._current].release()
        else:
            self._current = -1


def preempted(at: Mapping[int, int]) -> Choice:
    """Return the choice to go on with the same thread, except for some steps, at which the n-th other one takes over."""

    def choose(step: int, running: int, able: Sequence[int]) -> int:
        others = [thread for thread in able if thread != running]
        return others[at[step] % len(others)] if step in at and others else running

    return choose


def schedules(steps: int, others: int, most: int) -> Iterator[dict[int, int]]:
    """Enumerate all ways to preempt at most so many times within the first steps."""
    for count in range(most + 1):
        for places in combinations(range(1, steps + 1), count):
            for whom in product(range(others), repeat=count):
                yield dict(zip(places, whom, strict=True))


def twin(module: types.ModuleType, scheduler: Scheduler, changes: Mapping[str, str] | None = None) -> Any:
    """Return a kernel module's functions as plain Python over atomics that yield; `changes` to their text make mutants."""
    names: dict[str, Any] = {**vars(module), **_atomics(scheduler)}
    exec(_compiled(module, tuple((changes or {}).items())), names)  # noqa: S102 - a module's own text
    return types.SimpleNamespace(**{name: value for name, value in names.items() if not name.startswith("__")})


@cache
def _compiled(module: types.ModuleType, changes: tuple[tuple[str, str], ...]) -> types.CodeType:
    functions = [getattr(value, "py_func", None) for value in vars(module).values()]
    texts = [inspect.getsource(f).partition("\n")[2] for f in functions if f and f.__module__ == module.__name__]
    text = "\n".join(texts)
    for old, new in changes:
        if old not in text:  # no AssertionError, which tests of mutants take for a mutant that was found
            raise ValueError(f"there is no such line any more: {old}")
        text = text.replace(old, new)
    return compile("from __future__ import annotations\n" + text, module.__name__, "exec")


def _atomics(scheduler: Scheduler) -> dict[str, Any]:
    def load(array: Any, at: int) -> int:
        scheduler.turn()
        return int(array[at])

    def store(array: Any, at: int, word: int) -> None:
        scheduler.turn()
        array[at] = word

    def swap_if(array: Any, at: int, old: int, new: int) -> bool:
        scheduler.turn()
        if array[at] != old:
            return False
        array[at] = new
        return True

    def add(array: Any, at: int, amount: int) -> int:
        scheduler.turn()
        before = int(array[at])
        array[at] = before + amount
        return before

    known = {"load": load, "store": store, "publish": store, "swap_if": swap_if, "add": add}
    assert all(hasattr(atomics, name) for name in known)
    return known


@dataclass
class Operation:
    """A call, and when it began and ended on a clock that all threads share."""

    thread: int
    name: str
    argument: Any
    began: int
    ended: int = 0
    result: Any = None


@dataclass
class History:
    """What was called, in the order in which calls began."""

    operations: list[Operation] = field(default_factory=list)
    _clock: int = 0

    def call(self, thread: int, name: str, argument: Any, body: Callable[[], Any]) -> Any:
        """Call, and note it."""
        self._clock += 1
        operation = Operation(thread, name, argument, self._clock)
        self.operations.append(operation)
        operation.result = body()
        self._clock += 1
        operation.ended = self._clock
        return operation.result


def linearizable(history: History, state: Any, step: Callable[[Any, Operation], Any]) -> bool:
    """Whether some order of the calls, each within its time, is one that the sequential specification has.

    Wing and Gong's search, which remembers where it has been. step(state, call) is the state after the call, None if the
    specification has not that result; states can be hashed.
    """
    operations = history.operations
    seen: set[tuple[int, Any]] = set()
    todo = [(0, state)]
    while todo:
        done, state = todo.pop()
        if done == (1 << len(operations)) - 1:
            return True
        left = [number for number in range(len(operations)) if not done >> number & 1]
        first_end = min(operations[number].ended for number in left)
        for number in left:
            if operations[number].began > first_end:
                break
            after = step(state, operations[number])
            if after is not None and (done | 1 << number, after) not in seen:
                seen.add((done | 1 << number, after))
                todo.append((done | 1 << number, after))
    return False
