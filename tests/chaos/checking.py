"""Holds what a stream has come to against brute force: answers, late rows, quarantined rows, and what is left over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from tests.chaos import naive
from tests.chaos.driver import SHARED, Stream, deliveries
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
    if stream.scenario == "shared":
        _check_each(stream, batches, [whole[low:high] for low, high in pairwise(ends)])
        _check_told_again(stream)
        _check_left_over(stream, ledger)
        return
    brought = [(whole[low:high], batch.punctuation) for (low, high), batch in zip(pairwise(ends), batches, strict=True)]
    amends = stream.scenario in {"amended", "early"}
    pane_end = naive.continuous_pane_end if stream.scenario == "continuous" else naive.pane_end
    closed = naive.final if amends else pane_end
    taken = naive.taken(brought, closed)
    _check_rejected(stream, taken, batches)
    punctuation = max(batch.punctuation for batch in batches if batch.punctuation is not None)
    if amends:
        _check_versions(stream, taken)
        assert sum(batch.amended["rows"] for batch in batches if batch.amended) > 0, "some rows amend"
    else:
        _check_answers(stream, taken.entered, punctuation)
    _check_told_again(stream)
    _check_left_over(stream, ledger)


def _check_each(stream: Stream, batches: list[BatchMetrics], brought: list[list[Row]]) -> None:
    """Hold each of several queries against brute force: it answers, drops and counts as if it were alone."""
    late = _written(stream.folder / "late")
    for name, windows in SHARED.items():
        own = [batch.queries[name] for batch in batches]
        pane_end = naive.short_pane_end if name == "sums" else naive.pane_end
        after = [metrics.punctuation for metrics in own]
        taken = naive.taken(zip(brought, after, strict=True), pane_end)
        counted = sum((Counter(metrics.quarantined) for metrics in own), Counter[str]())
        assert counted == taken.quarantined, f"put aside by {name}"
        assert sum(metrics.late_rows for metrics in own) == len(taken.late), f"late for {name}"
        first = _ledger_number(stream.late_from, batches)
        for reason, rows in (("late", taken.late), ("future", taken.future)):
            emitted = [row["id"] for row in late if row["reason"] == reason and name in row["queries"].split(", ")]
            assert sorted(emitted) == sorted(id_ for batch, id_ in rows if batch >= first), f"{reason} for {name}"
        punctuation = max(time for time in after if time is not None)
        meant = naive.sums if name == "sums" else naive.skyline
        inside = naive.windows(taken.entered, punctuation, windows.length, windows.slide)
        _check_same(_found(stream.folder / "out" / name, name), {start: meant(rows) for start, rows in inside.items()})


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
    if stream.scenario == "continuous":
        written = _written(stream.folder / "out")
        clock = punctuation // naive.CONTINUOUS * naive.CONTINUOUS
        emitted: Sequence[Hashable] = sorted((row["action_time"], row["action"], row["id"]) for row in written)
        assert emitted == naive.updates(entered, clock)
        return
    meant = naive.sums if stream.scenario == "sums" else naive.skyline
    expected = {start: meant(inside) for start, inside in naive.windows(entered, punctuation).items()}
    _check_same(_found(stream.folder / "out", stream.scenario), expected)


def _found(folder: Path, query: str) -> dict[int, list[Hashable]]:
    found: dict[int, list[Hashable]] = {}
    for row in _written(folder):
        found.setdefault(row["window_start"], []).append(_answer(row, query))
    return found


def _check_same(found: Mapping[int, Sequence[Hashable]], expected: Mapping[int, Sequence[Hashable]]) -> None:
    assert {start: sorted(answers, key=str) for start, answers in found.items()} == {
        start: sorted(answers, key=str) for start, answers in expected.items()
    }


def _check_versions(stream: Stream, taken: Taken) -> None:
    """Each version of each window is there once, and is that of brute force."""
    found: dict[int, dict[int, list[tuple[bool, int]]]] = {}
    for row in _written(stream.folder / "out"):
        assert not row["empty"]
        answer = (row.get("early", False), row["id"])
        found.setdefault(row["window_start"], {}).setdefault(row["version"], []).append(answer)
    if stream.scenario == "early":
        wanted = naive.early_versions(taken.by_batch, naive.EVERY)
        assert any(early for versions in wanted.values() for early, _ in versions)
    else:
        at_end = naive.versions(taken.by_batch).items()
        wanted = {start: [(False, rows) for rows in versions] for start, versions in at_end}
    assert {start: [sorted(ids) for _, ids in sorted(versions.items())] for start, versions in found.items()} == {
        start: [[(early, id_) for id_ in naive.skyline(rows)] for early, rows in versions]
        for start, versions in wanted.items()
    }
    assert all(sorted(versions) == list(range(len(versions))) for versions in found.values())


def _answer(row: Row, scenario: str) -> Hashable:
    if scenario in {"skyline", "rolling"}:
        key: int = row["id"]
        return key
    return str(row["sensor"]), row["n"], row["total"], row["low"]


def _check_told_again(stream: Stream) -> None:
    """A batch that a sink receives again, after a kill, is the batch that it received before: a function could not take it back."""
    for name in (*_outputs(stream), "late"):
        batches = [path.name.partition("-")[0] for path in deliveries(stream.folder / name)]
        assert len(batches) == len(set(batches)), f"{name} received two batches under one number"


def _check_left_over(stream: Stream, ledger: Ledger) -> None:
    """Nothing lies there that no batch needs."""
    last = ledger.latest()
    assert last is not None
    refs = [
        ref
        for operator in last.operator.get("queries", {"": last.operator}).values()
        for refs in (
            *operator["panes"].values(),
            operator["ahead"],
            operator.get("front_partials", ()),
            *operator.get("closed", {"panes": {}})["panes"].values(),
        )
        for ref in refs
    ]
    skypane = stream.folder / "checkpoint" / "skypane"
    assert {path.name for path in (skypane / "partials").iterdir()} == {ref[0] for ref in refs}
    passing = [
        skypane / "rejected",
        skypane / "answers",
        *(stream.folder / name / "_staging" for name in (*_outputs(stream), "late")),
    ]
    assert [path for folder in passing for path in folder.rglob("*") if path.is_file()] == []


def _outputs(stream: Stream) -> tuple[str, ...]:
    return tuple(f"out/{name}" for name in SHARED) if stream.scenario == "shared" else ("out",)


def _written(folder: Path) -> list[Row]:
    return [row for path in sorted(folder.glob("*.parquet")) for row in _rows(pq.read_table(path))]


def _rows(table: pa.Table) -> list[Row]:
    """Return rows with times as microseconds."""
    for index, column in enumerate(table.schema):
        if pa.types.is_timestamp(column.type):
            table = table.set_column(index, column.name, table.column(index).cast(pa.int64()))
    found: list[Any] = table.to_pylist()
    return found
