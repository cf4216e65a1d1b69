"""Rows of a workload for a replay, generated where they are read: nothing is stored, and only the config is sent.

A workload can only be generated from its beginning. Each process therefore keeps its stream and continues it:
micro-batches ascend, and the tasks of a micro-batch share its rows, which are kept until the next one. Every process
generates the whole stream to read its part, so n tasks per micro-batch generate n times the rows, and a run that
resumes at row r generates r rows first.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from skypane.runtime.spark.sources.recordings import Replayable
from skypane.types import ConfigError, IntArray, Micros
from skypane.workloads import Stream, workload


def read_parameters(text: str) -> dict[str, Any]:
    """Return the parameters by name from a JSON object; raise ConfigError for other text."""
    try:
        parameters = json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigError(f"parameters of a workload must be JSON, got {text!r}: {error}") from error
    if not isinstance(parameters, dict):
        raise ConfigError(f'parameters of a workload must be a JSON object such as {{"rate": 1000}}, got {text!r}')
    return parameters


def generated(name: str, parameters: Mapping[str, Any]) -> Generated:
    """Return the rows of the named workload; raise ConfigError for parameters that it does not take."""
    return Generated(workload(name, **parameters))


@dataclass(frozen=True)
class Generated(Replayable):
    """Rows of a workload with a known number of rows."""

    workload: Stream

    def __post_init__(self) -> None:
        if self.workload.rows is None:
            raise ConfigError("a workload that is replayed needs the parameter rows, its number of rows")

    @property
    def schema(self) -> pa.Schema:
        return self.workload.schema

    @cached_property
    def row_count(self) -> int:
        """The largest number of rows; a workload whose length ends earlier has fewer."""
        return self.workload.rows or 0

    def due(self, start: int, elapsed: Micros) -> int:
        return _clock(self.workload).due(start, elapsed, self.row_count)

    def slice(self, start: int, end: int, since: int | None = None) -> Iterator[pa.RecordBatch]:
        return _maker(self.workload).slice(start, end, start if since is None else since)


class _Making:
    """The generated part of a workload's stream; its oldest rows are dropped."""

    def __init__(self, made: Stream) -> None:
        self.workload = made
        self.restart()

    def restart(self) -> None:
        self.coming = iter(self.workload.batches())
        #: (number of its first row, rows), in order, without gaps
        self.kept: deque[tuple[int, pa.RecordBatch]] = deque()
        self.made = 0

    def first(self) -> int:
        """Return the first row that is kept, or that is generated next."""
        return self.kept[0][0] if self.kept else self.made

    def go_on(self) -> bool:
        """Generate more rows; return False at the end of the workload."""
        batch = next(self.coming, None)
        if batch is None:
            return False
        self.kept.append((self.made, batch))
        self.made += batch.num_rows
        return True

    def go_to(self, row: int, keep_from: int) -> None:
        """Generate rows up to `row` or the end, and drop those before `keep_from`."""
        if keep_from < self.first():
            self.restart()
        self.forget(keep_from)
        while self.made < row and self.go_on():
            self.forget(keep_from)

    def forget(self, before: int) -> None:
        """Drop the batches whose rows are all before row `before`."""
        while self.kept and self.kept[0][0] + self.kept[0][1].num_rows <= before:
            self.kept.popleft()

    def slice(self, start: int, end: int, since: int) -> Iterator[pa.RecordBatch]:
        """Yield rows [start, end); rows from `since` on are kept, because another task may need them."""
        self.go_to(end, min(since, start))
        for first, batch in tuple(self.kept):
            begins, ends = max(start - first, 0), min(end - first, batch.num_rows)
            if begins < ends:
                yield batch.slice(begins, ends - begins)


class _Clock:
    """Computes the rows that are due; used by the planning process, with ascending times."""

    def __init__(self, made: Stream) -> None:
        self.stream = _Making(made)
        #: the row from which time is counted, and its arrival
        self.origin: tuple[int, Micros] | None = None
        #: the time of the last call; rows that were due before are dropped
        self.elapsed: Micros = 0

    def due(self, start: int, elapsed: Micros, row_count: int) -> int:
        """Return the first of `row_count` rows that arrives more than `elapsed` after row `start`."""
        if self.origin is None or self.origin[0] != start or elapsed < self.elapsed:
            self.stream.go_to(start + 1, start)
            if self.stream.made <= start:
                return row_count  # the workload ended before row `start`
            first, batch = self.stream.kept[0]
            self.origin = start, int(_arrivals(batch)[start - first])
        self.elapsed = elapsed
        return self._after(self.origin[1] + elapsed, row_count)

    def _after(self, time: Micros, row_count: int) -> int:
        while self.stream.kept or self.stream.go_on():
            first, batch = self.stream.kept[0]
            arrivals = _arrivals(batch)
            if arrivals[-1] > time:
                return min(first + int(np.searchsorted(arrivals, time, side="right")), row_count)
            self.stream.forget(first + batch.num_rows)
        return row_count


def _arrivals(batch: pa.RecordBatch) -> IntArray:
    times: IntArray = batch.column("arrival").cast(pa.int64()).to_numpy()
    return times


@lru_cache(maxsize=2)
def _maker(made: Stream) -> _Making:
    return _Making(made)


@lru_cache(maxsize=2)
def _clock(made: Stream) -> _Clock:
    return _Clock(made)
