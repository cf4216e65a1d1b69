"""What a stream must have come to, by brute force over its rows and their fates; knows nothing of how it was run, or of skypane.

Each function returns what is wrong, a sentence each.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, islice
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
from tests.chaos.naive import (
    CONTINUOUS,
    EVERY,
    LENGTH,
    SLIDE,
    Row,
    better,
    early_versions,
    final,
    rows_of,
    skyline,
    taken,
    unusable,
    versions,
    windows,
)

Found = list[tuple[int, list[Row]]]
"""The windows of an output in the order in which they stand there: where each starts, and its rows."""
Expected = dict[int, list[Row]]
Update = tuple[int, str, int]
Batches = Sequence[tuple[list[Row], int | None]]
"""The rows of each batch, and the punctuation after it."""
_EVER: Final = 1 << 62
_ERROR: Final = 0.01 * (1 + 1e-12)
"""How far off the approximate median may be, as a part of itself; a bucket may begin where the bound ends, to the last bit."""


def parquet_rows(paths: Iterable[Path]) -> Iterator[Row]:
    """Return rows in the order of files, times as microseconds."""
    for path in paths:
        yield from rows_of(pq.read_table(path))


def windows_of(rows: Iterable[Row]) -> Found:
    return [(start, list(group)) for start, group in groupby(rows, key=lambda row: row["window_start"])]


def in_folder(folder: Path) -> Found:
    return windows_of(parquet_rows(sorted(folder.glob("*.parquet"))))


def in_calls(folder: Path) -> tuple[Found, list[str]]:
    """Return what a function received; a batch that it received again must have been the same."""
    received: dict[str, list[list[Row]]] = defaultdict(list)
    for path in sorted(folder.glob("*.parquet")):
        received[path.name.partition("-")[0]].append([*parquet_rows([path])])
    wrong = [
        f"batch {batch} was delivered in {len(each)} ways"
        for batch, each in received.items()
        if any(one != each[0] for one in each)
    ]
    return windows_of(row for batch in sorted(received) for row in received[batch][0]), wrong


def in_topic(messages: Iterable[tuple[bytes, bytes]]) -> tuple[Found, list[str]]:
    """Return what a topic says, whose keys are a batch and a place in it; what is there twice must be the same."""
    received: dict[tuple[int, int], bytes] = {}
    wrong = list[str]()
    for key, value in messages:
        batch, place = map(int, key.split(b"/"))
        if received.setdefault((batch, place), value) != value:
            wrong.append(f"row {place} of batch {batch} was sent as {received[batch, place]!r} and as {value!r}")
    rows = (json.loads(received[key]) for key in sorted(received))
    return windows_of({"window_start": row["start"], "id": row["id"]} for row in rows), wrong


def not_the_windows(
    found: Found, expected: Expected, same: Callable[[list[Row], list[Row]], bool], *, whole: bool
) -> list[str]:
    """Hold windows against the rows that must be in them; unless `whole`, windows may be missing at the end."""
    starts = [start for start, _ in found]
    wrong = [] if starts == sorted(set(starts)) else [f"windows come twice or out of order: {_disorder(starts)}"]
    missing, extra = sorted(set(expected) - set(starts)), sorted(set(starts) - set(expected))
    if not whole:
        missing = [start for start in missing if starts and start < starts[-1]]
    wrong += [f"{len(missing)} windows are missing, the first from {missing[0]}"] if missing else []
    wrong += [f"{len(extra)} windows are too many, the first from {extra[0]}"] if extra else []
    other = [start for start, rows in found if start in expected and not same(rows, expected[start])]
    wrong += [f"{len(other)} windows are other than defined, the first from {other[0]}"] if other else []
    return wrong


def _disorder(starts: Sequence[int]) -> str:
    at = next((at for at in range(1, len(starts)) if starts[at] <= starts[at - 1]), 0)
    return f"{starts[at]} after {starts[at - 1]}, at place {at} of {len(starts)}"


def expected_windows(entering: Iterable[Row], slide: int = SLIDE) -> Expected:
    return windows(entering, _EVER, slide=slide)


def is_counts(rows: list[Row], inside: list[Row]) -> bool:
    counts = [(row["sensor"], row["n"]) for row in rows]
    return len(counts) == len(set(counts)) and dict(counts) == Counter(row["sensor"] for row in inside)


def not_the_versions(answers: Iterable[Row], batches: Batches) -> list[str]:
    """Hold each version of each amended window against the rows that had come by then; windows must have been amended."""
    found: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for row in answers:
        found[row["window_start"]][row["version"]].append(row["id"])
    meant = {start: list(map(skyline, each)) for start, each in versions(taken(batches, final).by_batch).items()}
    wrong = [] if any(len(each) > 1 for each in meant.values()) else ["no window was amended"]
    other = [
        start
        for start in sorted({*found, *meant})
        if dict(enumerate(meant.get(start, []))) != {n: sorted(ids) for n, ids in found.get(start, {}).items()}
    ]
    return wrong + ([f"{len(other)} windows have other versions, the first from {other[0]}"] if other else [])


def not_the_changes(answers: Iterable[Row], batches: Batches) -> list[str]:
    """Hold what changes of early answers and of amended ones add up to against the last versions; no row may come twice."""
    found: dict[int, Counter[int]] = defaultdict(Counter)
    ordered = sorted(answers, key=lambda row: (row["window_start"], row["version"], row["action"] == "ADD"))
    twice = 0
    for row in ordered:
        there = found[row["window_start"]]
        there[row["id"]] += 1 if row["action"] == "ADD" else -1
        twice += there[row["id"]] not in {0, 1}
    wrong = [f"{twice} rows come twice, or go without having come"] if twice else []
    meant = early_versions(taken(batches, final).by_batch, EVERY)
    wrong += [] if any(early for each in meant.values() for early, _ in each) else ["no window was answered early"]
    other = [
        start
        for start in sorted({*found, *meant})
        if sorted(found[start].elements()) != (skyline(meant[start][-1][1]) if start in meant else [])
    ]
    return wrong + ([f"{len(other)} windows have another last version, the first from {other[0]}"] if other else [])


def rejected_of(batches: Batches) -> Counter[tuple[int, str]]:
    """Return what must become of the rows that are too late to amend anything, or cannot be placed, by their ids."""
    found = taken(batches, final)
    strange = ((row["id"], unusable(row)) for rows, _ in batches for row in rows)
    return Counter(
        [*((id_, "late") for _, id_ in found.late), *((id_, "future") for _, id_ in found.future),
         *((id_, reason) for id_, reason in strange if reason)]
    )  # fmt: skip


def is_skyline(rows: list[Row], inside: list[Row]) -> bool:
    return sorted(row["id"] for row in rows) == skyline(inside)


def is_sums(rows: list[Row], inside: list[Row]) -> bool:
    """Sums, counts and least values to the bit; few values are counted exactly, and a median is within its bound."""
    by_sensor = _by_sensor(inside)
    return len(rows) == len(by_sensor) and all(
        row["sensor"] in by_sensor and _is_sum(row, by_sensor[row["sensor"]]) for row in rows
    )


def _is_sum(row: Row, group: list[Row]) -> bool:
    prices = sorted(one["price"] for one in group)
    median = prices[(len(prices) - 1) // 2]
    exact = (len(group), sum(one["weight"] for one in group), prices[0], len({one["id"] for one in group}))
    received = (row["n"], row["total"], row["low"], row["different"])
    return exact == received and abs(row["median"] - median) <= _ERROR * abs(median)


def tumbling(rows: Iterable[Row]) -> Expected:
    found: Expected = defaultdict(list)
    for row in rows:
        found[row["ts"] // SLIDE * SLIDE].append(row)
    return dict(found)


def is_ids(rows: list[Row], inside: list[Row]) -> bool:
    received = {row["sensor"]: (row["n"], row["total"], sorted(row["ids"])) for row in rows}
    return len(received) == len(rows) and received == {
        sensor: (len(group), sum(row["weight"] for row in group), sorted(row["id"] for row in group))
        for sensor, group in _by_sensor(inside).items()
    }


def _by_sensor(rows: Iterable[Row]) -> dict[Any, list[Row]]:
    found: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        found[row["sensor"]].append(row)
    return found


def not_the_updates(received: Sequence[Row], entering: Sequence[Row], *, whole: bool) -> list[str]:
    """Hold updates of a continuous skyline against their definition; unless `whole`, they may end before the rows do."""
    found = [(row["action_time"], row["action"], row["id"]) for row in received]
    order = [(time, action == "ADD") for time, action, _ in found]
    wrong = [] if order == sorted(order) else ["updates are out of order"]
    clock = (
        (max(row["ts"] for row in entering) // CONTINUOUS + 1) * CONTINUOUS if whole else (found[-1][0] if found else 0)
    )
    meant = Counter(all_updates(entering, clock))
    written = Counter(update for update in found if update[0] < clock)
    missing, extra = meant - written, written - meant
    wrong += [f"{missing.total()} updates are missing, such as {next(iter(missing))}"] if missing else []
    wrong += [f"{extra.total()} updates are too many, such as {next(iter(extra))}"] if extra else []
    return wrong


def all_updates(entering: Sequence[Row], clock: int) -> Iterator[Update]:
    """When each row comes to the front and leaves it: from the last better one before it is over, to the first after it."""
    rows = sorted(entering, key=lambda row: row["ts"])
    times = [row["ts"] for row in rows]
    for row in rows:
        near = rows[bisect_right(times, row["ts"] - LENGTH) : bisect_left(times, row["ts"] + LENGTH)]
        rivals = [one["ts"] for one in near if better(one, row)]
        begin = max([row["ts"], *(time + LENGTH for time in rivals if time <= row["ts"])])
        end = min([row["ts"] + LENGTH, *(time for time in rivals if time > row["ts"])])
        stays = [(begin, "ADD", row["id"]), (end, "DEL", row["id"])] if begin < end else []
        yield from (update for update in stays if update[0] < clock)


def not_the_front(front: Sequence[Row], received: Iterable[Row]) -> list[str]:
    """Hold the rows of a front against the updates that have led to it."""
    there: Counter[int] = Counter()
    for row in received:
        there[row["id"]] += 1 if row["action"] == "ADD" else -1
    meant = sorted(id_ for id_, count in there.items() if count)
    found = sorted(row["id"] for row in front)
    return [] if found == meant else [f"the front has rows {_short(found)}, the updates leave {_short(meant)}"]


def not_the_rejected(received: Iterable[Row], meant: Counter[tuple[int, str]]) -> list[str]:
    """Hold late and quarantined rows against their fates."""
    found = Counter((row["id"], row["reason"]) for row in received)
    missing, extra = meant - found, found - meant
    wrong = [f"{missing.total()} rejected rows are missing: {_short(missing)}"] if missing else []
    return [*wrong, f"{extra.total()} rejected rows are too many: {_short(extra)}"] if extra else wrong


def _short(some: Iterable[Any]) -> str:
    return ", ".join(map(str, islice(some, 5)))
