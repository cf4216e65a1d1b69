"""Shards of a front, asked as one Arrow map stage: questions and answers lie in files beside the partials, a task a shard.

A question is the points of a shard and the arrivals; they are numbers, whatever the rows are. Nothing of it is remembered:
a shard's points are dealt from the driver with each batch, so that there may be more or fewer of them with the next one.
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

from skypane.operators.continuous import group_shards, shards
from skypane.operators.continuous.front import Arrivals, Stored
from skypane.operators.continuous.fronts import Asking
from skypane.operators.continuous.group_shards import GroupAnswer, GroupQuestion
from skypane.operators.continuous.shards import Question, Spans
from skypane.operators.continuous.updates import Updates
from skypane.runtime.spark.engine import partials
from skypane.runtime.spark.engine.partials import PartialReader, PartialRef, attempt_name
from skypane.runtime.spark.machine.collector import keep_loaded
from skypane.runtime.spark.store import Store
from skypane.types import CheckpointError, FloatArray, IntArray, Micros

ASKED: Final = 99_997
"""Task number, in a file's name, of the questions."""


_Asked: TypeAlias = tuple[tuple[PartialRef, PartialRef], tuple[Any, ...]]
"""References to arrivals and stored points; the clock, and the rest of the question."""
_Answer: TypeAlias = Callable[[pa.Table, pa.Table, tuple[Any, ...]], list[pa.Table]]


@dataclass
class Shards:
    """Asks the shards of one batch.

    store     of partials
    written   the files that questions and answers are in
    busy      seconds that each shard took
    """

    spark: SparkSession
    store: Store
    batch_id: int
    written: set[str] = field(default_factory=set)
    busy: tuple[float, ...] = ()

    def asking(self, shards: int) -> Asking:
        """Return how so many shards are asked."""
        return Asking(shards, self._ask, self._ask_groups)

    def _ask(self, questions: Sequence[Question]) -> list[Spans]:
        tables = [_table(questions[0].arrivals), *(_table(q.stored) for q in questions)]  # all have the same arrivals
        arrivals, *stored = self._write(tables)
        asked = [
            ((arrivals, ref), (q.stored.clock, q.hosted, q.window, q.until))
            for q, ref in zip(questions, stored, strict=True)
        ]
        answers = self._answers(_answer, asked)
        return [Spans(_column(spans, "starts"), _column(spans, "ends")) for (spans,) in answers]

    def _ask_groups(self, questions: Sequence[GroupQuestion]) -> list[GroupAnswer]:
        tables = [
            table
            for q in questions
            for table in (_table(q.arrivals, q.arrival_groups), _table(q.stored, q.stored_groups))
        ]
        refs = self._write(tables)
        asked = [
            ((arrivals, stored), (q.stored.clock, q.window, q.until))
            for q, arrivals, stored in zip(questions, refs[::2], refs[1::2], strict=True)
        ]
        return [
            GroupAnswer(
                Updates(*(_column(told, name) for name in Updates._fields)),
                _column(left, "rows"),
                _column(left, "starts"),
            )
            for told, left in self._answers(_answer_groups, asked)
        ]

    def _write(self, tables: Sequence[pa.Table]) -> list[PartialRef]:
        name = attempt_name(self.batch_id, ASKED)
        self.written.add(name)
        return partials.write(self.store, name, tables)

    def _answers(self, answer: _Answer, asked: list[_Asked]) -> list[list[pa.Table]]:
        """Return the tables of each answer: one job, a task a shard."""
        stage = ShardStage(self.store, self.batch_id, answer, tuple(asked))
        rows = self.spark.range(0, len(asked), 1, len(asked)).mapInArrow(stage, "answer string").collect()
        told = sorted((json.loads(row.answer) for row in rows), key=lambda said: said["shard"])
        for damage in (said["damage"] for said in told if said["damage"]):
            raise CheckpointError(damage)
        refs = [[PartialRef.from_json(ref) for ref in said["refs"]] for said in told]
        self.written |= {ref.file for answered in refs for ref in answered}
        self.busy = tuple(said["busy"] for said in told)
        read = PartialReader(self.store)
        return [[read(ref) for ref in answered] for answered in refs]


@dataclass(frozen=True, slots=True)
class ShardStage:
    """What a task has to know to answer for its shard; travels to the workers."""

    store: Store
    batch_id: int
    answer: _Answer
    asked: tuple[_Asked, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Answer for the shards whose numbers come in; yield where each answer lies, or what is damaged."""
        for shard in (index for batch in batches for index in batch.column(0).to_pylist()):
            refs: list[PartialRef] = []
            damage, began = None, time.perf_counter()
            try:
                (arrivals, stored), setting = self.asked[shard]
                read = PartialReader(self.store)
                answers = self.answer(read(arrivals), read(stored), setting)
                refs = partials.write(self.store, attempt_name(self.batch_id, shard), answers)
            except CheckpointError as error:  # as a value: of an exception Spark would make a page of trace
                damage = str(error)
            told = {"shard": shard, "refs": [ref.to_json() for ref in refs], "damage": damage}
            yield pa.RecordBatch.from_pydict({"answer": [json.dumps(told | {"busy": time.perf_counter() - began})]})
        keep_loaded(type(self))


def _answer(arrivals: pa.Table, stored: pa.Table, setting: tuple[Any, ...]) -> list[pa.Table]:
    clock, *rest = setting
    spans = shards.answer(Question(_stored(stored, clock), _arrivals(arrivals), *rest))
    return [pa.table(spans._asdict())]


def _answer_groups(arrivals: pa.Table, stored: pa.Table, setting: tuple[Any, ...]) -> list[pa.Table]:
    clock, *rest = setting
    known, coming = _column(stored, "groups"), _column(arrivals, "groups")
    told = group_shards.answer_groups(GroupQuestion(_stored(stored, clock), known, _arrivals(arrivals), coming, *rest))
    return [pa.table(told.updates._asdict()), pa.table({"rows": told.rows, "starts": told.starts})]


def handed_over(store: Store, stored: Stored) -> Stored:
    """Write points for a shard and read them, as a question and its answer do together."""
    (ref,) = partials.write(store, attempt_name(0, ASKED), [_table(stored)])
    return _stored(PartialReader(store)(ref), stored.clock)


def _table(part: Arrivals | Stored, groups: IntArray | None = None) -> pa.Table:
    """Return points as a table; a clock, which is the same for all, is left out."""
    points, *_ = part
    flat = pa.array(np.ascontiguousarray(points).ravel())
    columns = {name: column for name, column in part._asdict().items() if name not in ("points", "clock")}
    columns |= {} if groups is None else {"groups": groups}
    return pa.table({"points": pa.FixedSizeListArray.from_arrays(flat, points.shape[1]), **columns})


def _column(table: pa.Table, name: str) -> Any:
    """Return a column of numbers as an array that may be written to."""
    return table.column(name).combine_chunks().to_numpy(zero_copy_only=False).copy()


def _point_array(table: pa.Table) -> FloatArray:
    column = table.column("points").combine_chunks()
    points: FloatArray = column.flatten().to_numpy().reshape(len(column), column.type.list_size).copy()
    return points


def _arrivals(table: pa.Table) -> Arrivals:
    return Arrivals(_point_array(table), _column(table, "times"), _column(table, "rows"))


def _stored(table: pa.Table, clock: Micros) -> Stored:
    return Stored(*_arrivals(table), _column(table, "starts"), clock)
