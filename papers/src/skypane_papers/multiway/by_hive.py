"""TuMLMC and WiML: many threads update windows in a W-Hive (paper 2, algorithms 3 and 6)."""

from __future__ import annotations

import numpy as np

from skypane.types import ConfigError, IntArray
from skypane_papers.multiway.aggregation import Aggregation, Winset
from skypane_papers.multiway.design import Multiway, packed, unpacked
from skypane_papers.multiway.tgate import TGate
from skypane_papers.multiway.whive import WHive

_TAKEN = 1_024


class TuMLMC(Multiway):
    """Tuple merged list, multiple consumers: each update thread reads all ready tuples and uses those of its keys."""

    def __init__(
        self, inputs: int, aggregation: Aggregation, *, workers: int = 1, room: int = 4_096, spare: int = 64
    ) -> None:
        super().__init__(inputs, aggregation)
        self.workers = workers
        self._gate = TGate(inputs, consumers=workers, room=room)
        self._hive = WHive(workers, aggregation, spare=spare)
        nothing = np.empty(0, np.int64)
        #: by worker: the time that it has reached, and its tuples for which there was no room yet
        self._waiting = [(0, nothing, nothing) for _ in range(workers)]
        self._finished = [False] * workers

    def _add(self, source: int, times: IntArray, keys: IntArray, values: IntArray) -> int:
        return self._gate.insert_tuples(source, times, packed(keys, values))

    def _leave(self, source: int) -> None:
        self._gate.leave(source)

    def work(self, worker: int) -> bool:
        """Update windows with the ready tuples of this worker's keys; return False after the last tuple."""
        if not 0 <= worker < self.workers:
            raise ConfigError(f"worker must be an update thread, 0 to {self.workers - 1}, got {worker}")
        if self._finished[worker]:
            return False
        until, times, payloads = self._waiting[worker]
        if not len(times):
            ended = all(self._left)  # read first, as an input may send and leave meanwhile
            ready = self._gate.get_ready_tuples(_TAKEN, worker)
            if not len(ready.times):
                if ended:
                    self._finished[worker] = True
                    self._hive.finish(worker)
                return not ended
            until = int(ready.times[-1])
            mine = unpacked(ready.payloads)[0] % self.workers == worker
            times, payloads = ready.times[mine], ready.payloads[mine]
        done = self._hive.update_windows(worker, times, *unpacked(payloads))
        self._waiting[worker] = until, times[done:], payloads[done:]
        if done == len(times):
            self._hive.pass_time(worker, until)
        return True

    def next_winset(self) -> Winset | None:
        """Return the earliest winset for which no update thread has more tuples."""
        return self._hive.get_next_winset()


class WiML(Multiway):
    """Window merged list: each input's thread updates windows itself, for functions that do not need order."""

    def __init__(self, inputs: int, aggregation: Aggregation, *, spare: int = 64) -> None:
        super().__init__(inputs, aggregation)
        if aggregation.in_order:
            raise ConfigError(
                f"function {aggregation.function} needs tuples in order, but WiML does not merge them; "
                "use TuMLSC or TuMLMC"
            )
        self._hive = WHive(inputs, aggregation, spare=spare)

    def _add(self, source: int, times: IntArray, keys: IntArray, values: IntArray) -> int:
        return self._hive.update_windows(source, times, keys, values)

    def _leave(self, source: int) -> None:
        self._hive.finish(source)

    def next_winset(self) -> Winset | None:
        """Return the earliest winset for which no input has more tuples."""
        return self._hive.get_next_winset()
