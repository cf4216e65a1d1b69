"""Shards of a front as one Arrow map stage, a task per shard; requests and responses are files beside the partials.

A request has the points of a shard and the arriving points, as numbers. Shards keep no state: the driver distributes
the points in each batch, so the number of shards may change with every batch.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from skypane.operators.fronts.front_operator import FrontContents, NewPoints, Updates
from skypane.operators.fronts.shards import (
    GroupShardRequest,
    GroupShardResponse,
    ShardPlan,
    ShardRequest,
    Spans,
    compare_in_shard,
    step_in_shard,
)
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine import partials
from skypane.runtime.spark.engine.partials import PartialReader, PartialReference, attempt_name
from skypane.runtime.spark.machine.worker_memory import keep_loaded
from skypane.types import CheckpointError, FloatArray, Micros

REQUEST: Final = 99_997
"""Task number, in a file's name, of the requests."""


_SentRequest: TypeAlias = tuple[tuple[PartialReference, PartialReference], tuple[Any, ...]]
"""References to arrivals and stored points; then the clock, and the other parameters of the request."""
_Respond: TypeAlias = Callable[[pa.Table, pa.Table, tuple[Any, ...]], list[pa.Table]]


@dataclass
class ShardClient:
    """Sends the requests of one batch to its shards.

    store     store of the partials
    written   files of the requests and responses
    busy      seconds that each shard took
    """

    spark: SparkSession
    store: DocumentStore
    batch_id: int
    written: set[str] = field(default_factory=set)
    busy: tuple[float, ...] = ()

    def plan(self, shards: int) -> ShardPlan:
        """Return a plan that sends requests to `shards` shards."""
        return ShardPlan(shards, self._send, self._send_groups)

    def _send(self, requests: Sequence[ShardRequest]) -> list[Spans]:
        tables = [_table(requests[0].arrivals), *(_table(r.stored) for r in requests)]  # all have the same arrivals
        arrivals, *stored = self._write(tables)
        sent = [
            ((arrivals, ref), (r.stored.clock, r.owned, r.window, r.until))
            for r, ref in zip(requests, stored, strict=True)
        ]
        responses = self._responses(_compare, sent)
        return [Spans(_column(spans, "starts"), _column(spans, "ends")) for (spans,) in responses]

    def _send_groups(self, requests: Sequence[GroupShardRequest]) -> list[GroupShardResponse]:
        tables = [table for r in requests for table in (_table(r.arrivals), _table(r.stored))]
        refs = self._write(tables)
        sent = [
            ((arrivals, stored), (r.stored.clock, r.window, r.until))
            for r, arrivals, stored in zip(requests, refs[::2], refs[1::2], strict=True)
        ]
        return [
            GroupShardResponse(
                Updates(*(_column(updates, name) for name in Updates._fields)),
                _column(left, "rows"),
                _column(left, "starts"),
            )
            for updates, left in self._responses(_step, sent)
        ]

    def _write(self, tables: Sequence[pa.Table]) -> list[PartialReference]:
        name = attempt_name(self.batch_id, REQUEST)
        self.written.add(name)
        return partials.write(self.store, name, tables)

    def _responses(self, respond: _Respond, requests: list[_SentRequest]) -> list[list[pa.Table]]:
        """Return the tables of each response, computed by one job with one task per shard."""
        stage = ShardStage(self.store, self.batch_id, respond, tuple(requests))
        rows = self.spark.range(0, len(requests), 1, len(requests)).mapInArrow(stage, "report string").collect()
        reports = sorted((json.loads(row.report) for row in rows), key=lambda report: report["shard"])
        for damage in (report["damage"] for report in reports if report["damage"]):
            raise CheckpointError(damage)
        refs = [[PartialReference.restored(ref) for ref in report["refs"]] for report in reports]
        self.written |= {ref.file for response in refs for ref in response}
        self.busy = tuple(report["busy"] for report in reports)
        read = PartialReader(self.store)
        return [[read(ref) for ref in response] for response in refs]


@dataclass(frozen=True, slots=True)
class ShardStage:
    """Responds to the requests to its shards; travels to the workers."""

    store: DocumentStore
    batch_id: int
    respond: _Respond
    requests: tuple[_SentRequest, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Respond for the shards whose numbers are received; yield references to each response, or the damage found."""
        for shard in (index for batch in batches for index in batch.column(0).to_pylist()):
            refs: list[PartialReference] = []
            damage, began = None, time.perf_counter()
            try:
                (arrivals, stored), setting = self.requests[shard]
                read = PartialReader(self.store)
                response = self.respond(read(arrivals), read(stored), setting)
                refs = partials.write(self.store, attempt_name(self.batch_id, shard), response)
            except CheckpointError as error:  # returned as a value: Spark would turn an exception into a page of trace
                damage = str(error)
            report = {"shard": shard, "refs": [ref.snapshot() for ref in refs], "damage": damage}
            yield pa.RecordBatch.from_pydict({"report": [json.dumps(report | {"busy": time.perf_counter() - began})]})
        keep_loaded(type(self))


def _compare(arrivals: pa.Table, stored: pa.Table, setting: tuple[Any, ...]) -> list[pa.Table]:
    clock, *rest = setting
    spans = compare_in_shard(ShardRequest(_stored(stored, clock), _arrivals(arrivals), *rest))
    return [pa.table(spans._asdict())]


def _step(arrivals: pa.Table, stored: pa.Table, setting: tuple[Any, ...]) -> list[pa.Table]:
    clock, *rest = setting
    response = step_in_shard(GroupShardRequest(_stored(stored, clock), _arrivals(arrivals), *rest))
    return [pa.table(response.updates._asdict()), pa.table({"rows": response.rows, "starts": response.starts})]


def round_trip(store: DocumentStore, stored: FrontContents) -> FrontContents:
    """Write points for a shard and read them again: the work of a request and its response, for calibration."""
    (ref,) = partials.write(store, attempt_name(0, REQUEST), [_table(stored)])
    return _stored(PartialReader(store)(ref), stored.clock)


def _table(part: NewPoints | FrontContents) -> pa.Table:
    """Return points as a table, without the clock, which is the same for all points."""
    columns = {name: column for name, column in part._asdict().items() if name != "clock" and column is not None}
    flat = pa.array(np.ascontiguousarray(part.points).ravel())
    return pa.table(columns | {"points": pa.FixedSizeListArray.from_arrays(flat, part.points.shape[1])})


def _column(table: pa.Table, name: str) -> Any:
    """Return a column of numbers as a writable array."""
    return table.column(name).combine_chunks().to_numpy(zero_copy_only=False).copy()


def _point_array(table: pa.Table) -> FloatArray:
    column = table.column("points").combine_chunks()
    points: FloatArray = column.flatten().to_numpy().reshape(len(column), column.type.list_size).copy()
    return points


def _arrivals(table: pa.Table) -> NewPoints:
    groups = _column(table, "groups") if "groups" in table.column_names else None
    return NewPoints(_point_array(table), _column(table, "times"), _column(table, "rows"), groups)


def _stored(table: pa.Table, clock: Micros) -> FrontContents:
    points, times, rows, groups = _arrivals(table)
    return FrontContents(points, times, rows, _column(table, "starts"), clock, groups)
