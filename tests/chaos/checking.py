"""Holds what a stream has come to against brute force: answers, late rows, quarantined rows, and what is left over."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import accumulate, chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow.parquet as pq
from tests.chaos import naive
from tests.chaos.naive import CHANGED, SHARED, SLIDE, Row, Taken, rows_of
from tests.chaos.noted import deliveries

from skypane.metrics import BatchMetrics
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine.ledger import KEEP, Ledger, Manifest

if TYPE_CHECKING:
    from tests.chaos.driver import Stream

Answers: TypeAlias = Mapping[int, Sequence[Hashable]]
Versions: TypeAlias = dict[int, list[tuple[bool, list[Row]]]]


@dataclass(frozen=True)
class Come:
    """What a stream has come to.

    batches  the metrics of each batch of the ledger
    brought  the rows that came with each, as microseconds; those that were readmitted are repaired
    again    how many rows were readmitted
    shown    whether what the scenario is about has happened: by chance it does not in some streams
    """

    stream: Stream
    last: Manifest
    batches: Sequence[BatchMetrics]
    brought: Sequence[list[Row]]
    again: int
    shown: list[bool] = field(default_factory=list)

    @cached_property
    def end(self) -> int:
        """The last punctuation."""
        return max(batch.punctuation for batch in self.batches if batch.punctuation is not None)

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """The folders of answers."""
        return tuple(f"out/{name}" for name in SHARED) if self.stream.scenario == "shared" else ("out",)

    def written(self, name: str = "out") -> list[Row]:
        return written(self.stream.folder / name)

    def answers(self, answer: Callable[[Row], Hashable], name: str = "out") -> dict[int, list[Hashable]]:
        """Return what a folder holds for each window."""
        found: dict[int, list[Hashable]] = defaultdict(list)
        for row in self.written(name):
            found[row["window_start"]].append(answer(row))
        return found

    def number_of(self, batch: int) -> int:
        """Return the ledger's number of a Spark batch: Spark does not count drains, which bring no rows."""
        own = [one.batch_id for one in self.batches if one.rows]
        return own[batch] if batch < len(own) else len(self.batches)

    def taken(self, pane_end: Callable[[int], int], query: str | None = None) -> Taken:
        """Return which rows have entered by brute force; check the others, those of one query of several if it is named."""
        own = [batch if query is None else batch.queries[query] for batch in self.batches]
        taken = naive.taken(zip(self.brought, [one.punctuation for one in own], strict=True), pane_end)
        counted = sum((Counter(one.quarantined) for one in own), Counter[str]())
        assert counted == taken.quarantined, f"put aside, by reason, {query}"
        assert sum(one.late_rows for one in own) == len(taken.late), f"late rows, {query}"
        came = len(self.stream.rows) + self.again
        assert len(taken.entered) + len(taken.late) + counted.total() == came, "no row is lost"
        first = self.number_of(self.stream.late_from)
        late = [row for row in self.written("late") if query is None or query in row["queries"].split(", ")]
        for reason, rows in (("late", taken.late), ("future", taken.future)):
            emitted = sorted(row["id"] for row in late if row["reason"] == reason)
            assert emitted == sorted(id_ for batch, id_ in rows if batch >= first), f"{reason}, {query}"
        return taken


Check: TypeAlias = Callable[[Come], None]


def check(stream: Stream) -> bool:
    """Raise AssertionError, saying what, if anything is missing, twice or other than it should be.

    Returns whether what the scenario is about has happened.
    """
    ledger = Ledger(DocumentStore.at(str(stream.folder / "checkpoint" / "skypane")))
    batches = [BatchMetrics.from_json(value) for value in ledger.history(KEEP)]
    assert [batch.batch_id for batch in batches] == list(range(len(batches))), "each batch once"
    last = ledger.latest()
    assert last is not None
    again = dict(_readmissions(ledger, len(batches)))
    brought = list(_brought(rows_of(stream.rows), batches, again))
    come = Come(stream, last, batches, brought, sum(len(brought[batch]) for batch in again))
    stream.row.check(come)
    _check_told_again(come)
    _check_left_over(come)
    return all(come.shown)


def _readmissions(ledger: Ledger, batches: int) -> Iterator[tuple[int, int]]:
    """Yield the numbers of the batches that readmitted rows, and of the last batch whose rows they brought."""
    known = None
    for batch in range(batches):
        through = ledger._read(batch).operator.get("readmitted", {}).get("null price")
        if through != known:
            yield batch, through
            known = through


def _brought(whole: list[Row], batches: Sequence[BatchMetrics], again: Mapping[int, int]) -> Iterator[list[Row]]:
    """Yield the rows that came with each batch."""
    at, rejected = 0, list[Row]()
    for batch in batches:
        if batch.batch_id in again:
            assert again[batch.batch_id] == batch.batch_id - 1
            rows, rejected = [row | {"price": naive.REPAIRED} for row in rejected], []
            assert batch.rows == len(rows), "all that were rejected come again, once"
        else:
            rows, at = whole[at : at + batch.rows], at + batch.rows
            rejected += [row for row in rows if naive.unusable(row) == "null price"]
        yield rows
    assert at == len(whole), "each row came in one batch"


def skylines(come: Come) -> None:
    _check_windows(come, naive.skyline, lambda row: row["id"])


def sums(come: Come) -> None:
    _check_windows(come, naive.sums, _sum)


def held(come: Come) -> None:
    """Rows that came after a pause were held until there were enough, and have entered; few of them cannot be placed."""
    skylines(come)
    came = [*accumulate(batch.rows for batch in come.batches)]
    for batch, read in zip(come.batches, came, strict=True):
        since = read - came[-1] // 2  # the pause is in the middle
        assert batch.held_rows > since / 2 or not 10 < since < 50


def given_up(come: Come) -> None:
    """Rows of clocks that are wrong were held, and quarantined before the end."""
    skylines(come)
    come.shown.append(any("future" in batch.quarantined for batch in come.batches[:-1]))


def _check_windows(
    come: Come, meant: Callable[[Sequence[Row]], Sequence[Hashable]], answer: Callable[[Row], Hashable]
) -> None:
    inside = naive.windows(come.taken(naive.pane_end).entered, come.end)
    _check_same(come.answers(answer), {start: meant(rows) for start, rows in inside.items()})


def updates(come: Come) -> None:
    """Updates of a continuous skyline are those of brute force."""
    entered = come.taken(partial(naive.pane_end, length=naive.CONTINUOUS)).entered
    clock = come.end // naive.CONTINUOUS * naive.CONTINUOUS
    emitted = sorted((row["action_time"], row["action"], row["id"]) for row in come.written())
    assert emitted == naive.updates(entered, clock)


def each_of_several(come: Come) -> None:
    """Each of several queries answers, drops and counts as if it were alone."""
    for name, (length, slide) in SHARED.items():
        short = partial(naive.pane_end, length=naive.SHORT)
        entered = come.taken(short if name == "sums" else naive.pane_end, name).entered
        end = max(one for batch in come.batches if (one := batch.queries[name].punctuation) is not None)
        meant = naive.sums if name == "sums" else naive.skyline
        inside = naive.windows(entered, end, length, slide)
        found = come.answers(_sum if name == "sums" else lambda row: row["id"], f"out/{name}")
        _check_same(found, {start: meant(rows) for start, rows in inside.items()})


def sums_of_two_queries(come: Come) -> None:
    """The windows that ended before the change have the answers of the first query, the others those of the second."""
    first, ended, end = come.number_of(CHANGED), dict[int, int](), None
    for batch in come.batches:
        end = max(filter(None, (end, batch.punctuation)), default=None)
        ended[batch.batch_id] = end or 0
    expected = {
        start: naive.sums(rows) if start + naive.LENGTH <= ended.get(first - 1, 0) else _without_least(rows)
        for start, rows in naive.windows(come.taken(naive.pane_end).entered, come.end).items()
    }
    _check_same(come.answers(_sum), expected)
    assert {"low" in row for row in come.written()} == {True, False}, "both have answered windows"


def _without_least(rows: Sequence[Row]) -> Sequence[Hashable]:
    return [answer[:3] for answer in naive.sums(rows) if isinstance(answer, tuple)]


def _sum(row: Row) -> Hashable:
    return str(row["sensor"]), row["n"], row["total"], *([row["low"]] if "low" in row else [])


def stays(come: Come) -> None:
    """Each row is in the unbroken runs of windows that brute force has it in, once."""
    found: dict[int, list[Hashable]] = defaultdict(list)
    for row in come.written():
        begin, count = row["window_from"], row["window_count"]
        assert row["window_to"] == begin + (count - 1) * SLIDE
        assert row["window_end"] == row["window_to"] + naive.LENGTH
        for place in range(count):
            found[begin + place * SLIDE].append(row["id"])
    come.shown.append(any(row["window_count"] > 1 for row in come.written()))
    inside = naive.windows(come.taken(naive.pane_end).entered, come.end)
    _check_same(found, {start: naive.skyline(rows) for start, rows in inside.items()})


def versions(come: Come) -> None:
    """Each version of each window is there once, and is that of brute force."""
    at_end = naive.versions(_amending(come).by_batch).items()
    _check_versions(come, {start: [(False, rows) for rows in each] for start, each in at_end})


def early_versions(come: Come) -> None:
    _check_versions(come, _early(come))


def changes(come: Come) -> None:
    """What each version adds to the one before it, and removes from it, makes the versions of brute force."""
    added: dict[int, dict[int, Counter[tuple[bool, int]]]] = defaultdict(lambda: defaultdict(Counter))
    for row in come.written():
        sign = {"ADD": 1, "DEL": -1}[row["action"]]
        added[row["window_start"]][row["version"]][row["early"], row["id"]] += sign
    wanted = _early(come)
    assert added.keys() == wanted.keys()
    for start, each in wanted.items():
        there = Counter[tuple[bool, int]]()
        for number, (early, rows) in enumerate(each):
            there.update(added[start].pop(number, Counter()))
            assert +there == Counter((early, id_) for id_ in naive.skyline(rows)), f"version {number} of {start}"
            assert min(there.values(), default=0) >= 0
        assert not added[start], "no version but these"


def _amending(come: Come) -> Taken:
    taken = come.taken(naive.final)
    come.shown.append(any(batch.amended and batch.amended["rows"] for batch in come.batches))
    return taken


def _early(come: Come) -> Versions:
    wanted = naive.early_versions(_amending(come).by_batch, naive.EVERY)
    come.shown.append(any(early for each in wanted.values() for early, _ in each))
    return wanted


def _check_versions(come: Come, wanted: Versions) -> None:
    found: dict[int, dict[int, list[tuple[bool, int]]]] = defaultdict(lambda: defaultdict(list))
    for row in come.written():
        assert not row["empty"]
        found[row["window_start"]][row["version"]].append((row.get("early", False), row["id"]))
    assert {start: [sorted(ids) for _, ids in sorted(each.items())] for start, each in found.items()} == {
        start: [[(early, id_) for id_ in naive.skyline(rows)] for early, rows in each] for start, each in wanted.items()
    }
    assert all(sorted(each) == list(range(len(each))) for each in found.values())


def _check_same(found: Answers, expected: Answers) -> None:
    assert {start: sorted(answers, key=str) for start, answers in found.items()} == {
        start: sorted(answers, key=str) for start, answers in expected.items()
    }


def _check_told_again(come: Come) -> None:
    """A batch that a sink receives again, after a kill, is the batch that it received before: a function could not take it back."""
    for name in (*come.outputs, "late"):
        batches = [path.name.partition("-")[0] for path in deliveries(come.stream.folder / name)]
        assert len(batches) == len(set(batches)), f"{name} received two batches under one number"


def _check_left_over(come: Come) -> None:
    """Nothing lies there that no batch needs."""
    skypane = come.stream.folder / "checkpoint" / "skypane"
    assert {path.name for path in (skypane / "partials").iterdir()} == partials_of(come.last)
    passing = [
        skypane / "rejected",
        skypane / "answers",
        *(come.stream.folder / name / "_staging" for name in (*come.outputs, "late")),
    ]
    assert [path for folder in passing for path in folder.rglob("*") if path.is_file()] == []


def partials_of(manifest: Manifest) -> set[str]:
    """Return the files of partials that a manifest names, in the states of all of its queries."""
    refs: list[Any] = []
    for state in manifest.operator.get("queries", {"": manifest.operator}).values():
        kept, shown = state.get("closed", {}).get("panes", {}), state.get("early", {}).get("shown", {})
        refs += [*state["ahead"], *state.get("front_partials", ())]
        refs += chain(*state["panes"].values(), *kept.values(), *shown.values())
    return {ref[0] for ref in refs}


def written(folder: Path) -> list[Row]:
    return [row for path in sorted(folder.glob("*.parquet")) for row in rows_of(pq.read_table(path))]
