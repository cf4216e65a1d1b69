"""Holds what a stream has come to against brute force: answers, late rows, quarantined rows, and what is left over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from tests.chaos import naive
from tests.chaos.driver import Stream, deliveries
from tests.chaos.naive import Row, Taken

from skypane.metrics import BatchMetrics
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine.ledger import KEEP, Ledger


def check(stream: Stream) -> None:
    """Raise AssertionError, saying what, if anything is missing, twice or other than it should be."""
    ledger = Ledger(DocumentStore.at(str(stream.folder / "checkpoint" / "skypane")))
    batches = [BatchMetrics.from_json(value) for value in ledger.history(KEEP)]
    assert [batch.batch_id for batch in batches] == list(range(len(batches))), "each batch once"
    ends = list(accumulate((batch.rows for batch in batches), initial=0))
    assert ends[-1] == len(stream.rows), "each row came in one batch"
    whole = _rows(stream.rows)
    brought = [(whole[low:high], batch.punctuation) for (low, high), batch in zip(pairwise(ends), batches, strict=True)]
    pane_end = naive.continuous_pane_end if stream.scenario == "continuous" else naive.pane_end
    taken = naive.taken(brought, pane_end)
    _check_rejected(stream, taken, batches)
    punctuation = max(batch.punctuation for batch in batches if batch.punctuation is not None)
    _check_answers(stream, taken.entered, punctuation)
    _check_told_again(stream)
    _check_left_over(stream, ledger)


def _check_rejected(stream: Stream, taken: Taken, batches: list[BatchMetrics]) -> None:
    counted = sum((Counter(batch.quarantined) for batch in batches), Counter[str]())
    assert counted == taken.quarantined, "put aside, by reason"
    assert sum(batch.late_rows for batch in batches) == len(taken.late), "late rows"
    assert len(taken.entered) + len(taken.late) + counted.total() == len(stream.rows), "no row is lost"
    first = _ledger_number(stream.late_from, batches)
    for reason, rows in (("late", taken.late), ("future", taken.future)):
        emitted = [row["id"] for row in _written(stream.folder / "late") if row["reason"] == reason]
        assert sorted(emitted) == sorted(id_ for batch, id_ in rows if batch >= first), reason


def _ledger_number(batch: int, batches: list[BatchMetrics]) -> int:
    """Return the ledger's number of a Spark batch: Spark does not count drains, which bring no rows."""
    own = [one.batch_id for one in batches if one.rows]
    return own[batch] if batch < len(own) else len(batches)


def _check_answers(stream: Stream, entered: list[Row], punctuation: int) -> None:
    written = _written(stream.folder / "out")
    if stream.scenario == "continuous":
        clock = punctuation // naive.CONTINUOUS * naive.CONTINUOUS
        emitted: Sequence[Hashable] = sorted((row["action_time"], row["action"], row["id"]) for row in written)
        assert emitted == naive.updates(entered, clock)
        return
    found: dict[int, list[Hashable]] = {}
    for row in written:
        found.setdefault(row["window_start"], []).append(_answer(row, stream.scenario))
    meant = naive.sums if stream.scenario == "sums" else naive.skyline
    expected = {start: meant(inside) for start, inside in naive.windows(entered, punctuation).items()}
    assert {start: sorted(answers, key=str) for start, answers in found.items()} == {
        start: sorted(answers, key=str) for start, answers in expected.items()
    }


def _answer(row: Row, scenario: str) -> Hashable:
    if scenario == "skyline":
        key: int = row["id"]
        return key
    return str(row["sensor"]), row["n"], row["total"], row["low"]


def _check_told_again(stream: Stream) -> None:
    """A batch that a sink receives again, after a kill, is the batch that it received before: a function could not take it back."""
    for name in ("out", "late"):
        batches = [path.name.partition("-")[0] for path in deliveries(stream.folder / name)]
        assert len(batches) == len(set(batches)), f"{name} received two batches under one number"


def _check_left_over(stream: Stream, ledger: Ledger) -> None:
    """Nothing lies there that no batch needs."""
    last = ledger.latest()
    assert last is not None
    operator = last.operator
    refs = [
        *(ref for refs in operator["panes"].values() for ref in refs),
        *operator["ahead"],
        *operator.get("front_partials", ()),
    ]
    skypane = stream.folder / "checkpoint" / "skypane"
    assert {path.name for path in (skypane / "partials").iterdir()} == {ref[0] for ref in refs}
    passing = [
        skypane / "rejected",
        skypane / "answers",
        *(stream.folder / name / "_staging" for name in ("out", "late")),
    ]
    assert [path for folder in passing for path in folder.rglob("*") if path.is_file()] == []


def _written(folder: Path) -> list[Row]:
    return [row for path in sorted(folder.glob("*.parquet")) for row in _rows(pq.read_table(path))]


def _rows(table: pa.Table) -> list[Row]:
    """Return rows with times as microseconds."""
    for index, column in enumerate(table.schema):
        if pa.types.is_timestamp(column.type):
            table = table.set_column(index, column.name, table.column(index).cast(pa.int64()))
    found: list[Any] = table.to_pylist()
    return found
