"""Where queues end: by hand, against a naive oracle, and against the generator, which knows where it put them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skypane as sp
from skypane.examples.traffic import QueueEnd
from skypane.plan import Plan
from skypane.runtime import local
from skypane.testing import check_query
from skypane.types import ConfigError
from skypane.windows import Windows
from skypane.workloads import Cabs
from skypane.workloads.cabs import CORNER, DEGREE, HOT

SCHEMA = pa.schema({"area": pa.string(), "cab": pa.int64(), "speed": pa.float64(), "time": pa.timestamp("us", "UTC")})
END = QueueEnd("cab", "speed", "time", crawling=2, vehicles=2)
HOUR = 3_600_000_000


def rows(*reports: tuple[str | None, int | None, float | None, int]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, report, strict=True)) for report in reports], schema=SCHEMA)


def found(table: pa.Table, end: QueueEnd = END) -> dict[Any, bool]:
    query = sp.Aggregate("area", end=sp.accumulate(end))
    return {row["area"]: row["end"] for row in query.lower(query.combine([query.lift(table)])).to_pylist()}


def oracle(table: pa.Table, end: QueueEnd = END) -> dict[Any, bool]:
    """By the words of the definition, vehicle by vehicle."""
    areas: dict[Any, dict[Any, list[tuple[int, float]]]] = {}
    for row in table.to_pylist():
        reports = areas.setdefault(row["area"], {}).setdefault(row["cab"], [])
        if row["speed"] is not None:
            reports.append((row["time"], row["speed"]))
    answer = {}
    for area, vehicles in areas.items():
        joined = 0
        for reports in vehicles.values():
            slow = [time for time, speed in reports if speed <= end.slow]
            fast = [time for time, speed in reports if speed >= end.fast]
            joined += len(slow) >= end.crawling and any(f < s for f in fast for s in slow)
        answer[area] = joined >= end.vehicles
    return answer


def test_an_area_into_which_two_come_at_speed_and_crawl_has_the_end_of_a_queue_by_hand():
    assert found(
        rows(
            # In "end" both come in at speed and crawl. In "inside" they crawl from the beginning, in "front" they leave at speed.
            ("end", 1, 50, 0), ("end", 1, 6, 1), ("end", 1, 4, 2), ("end", 2, 44, 3), ("end", 2, 5, 4), ("end", 2, 9, 5),
            ("inside", 1, 5, 6), ("inside", 1, 6, 7), ("inside", 2, 4, 7), ("inside", 2, 4, 8),
            ("front", 1, 5, 9), ("front", 1, 5, 10), ("front", 1, 40, 11), ("front", 2, 3, 9), ("front", 2, 8, 10), ("front", 2, 35, 12),
            # One that brakes makes no queue, a red light neither, and speeds between slow and fast are nothing.
            ("one", 1, 50, 0), ("one", 1, 6, 1), ("one", 1, 4, 2), ("one", 2, 15, 3), ("one", 2, 5, 4), ("one", 2, 9, 5),
            ("light", 1, 50, 0), ("light", 1, 0, 1), ("light", 1, 50, 2), ("light", 2, 50, 0), ("light", 2, 0, 1), ("light", 2, 50, 2),
        )
    ) == {"end": True, "inside": False, "front": False, "one": False, "light": False}  # fmt: skip


def test_what_is_missing_counts_for_nothing():
    table = rows(
        (None, 1, None, 0), (None, 1, float("nan"), 1), ("a", None, 50, 0), ("a", None, 1, 1), ("a", None, 1, 2)
    )
    assert found(table) == oracle(table) == {None: False, "a": False}
    assert found(table, QueueEnd("cab", "speed", "time", crawling=2, vehicles=1)) == {None: False, "a": True}


reports = st.tuples(
    st.sampled_from(["a", "b", None]),
    st.sampled_from([1, 2, 3, None]),
    st.sampled_from([0.0, 10.0, 10.5, 20.0, 55.0, float("nan"), None]),
    st.integers(0, 6),
)


@pytest.mark.long
@given(st.lists(reports, max_size=40))
def test_it_is_the_definition_for_any_reports_however_they_are_cut(given: list[Any]):
    table = rows(*given)
    assert found(table) == oracle(table)
    check_query(sp.Aggregate("area", end=sp.accumulate(END)), table, tries=2)


def areas_of(made: Cabs) -> pa.Table:
    """Reports of traffic with the area that each is in, of half a kilometre."""
    table = made.table()
    table = table.filter(pc.equal(table["report"], "traffic"))
    for number, (name, column) in enumerate((("east", "longitude"), ("north", "latitude"))):
        km = (table[column].to_numpy() - CORNER[number]) * DEGREE[number]
        table = table.append_column(name, pa.array(np.floor(km / 0.5).astype(np.int64)))
    return table


@pytest.mark.long
def test_it_finds_the_ends_that_the_generator_made_and_hardly_any_others():
    """For each hour: the end of a queue that grows is found where it comes to; what is found lies where some queue ended."""
    query = sp.Aggregate(["east", "north"], end=sp.accumulate(QueueEnd("cab", "speed", "time")))
    plan = Plan(query, Windows.of("1 hour"), "time", sp.Watermark("10 minutes"))
    right = wrong = grown = 0
    for answer in local.answers(plan, [areas_of(Cabs(length="4 hours")), local.Drain()]):
        begin, end = plan.windows.bounds(answer.window)
        queues = {place: [place.queue(hour) for hour in np.linspace(begin, end, 60) / HOUR % 24] for place in HOT}
        marked = answer.rows.filter(answer.rows["end"])
        cells = set(zip(marked["east"].to_pylist(), marked["north"].to_pylist(), strict=True))
        for east, north in cells:
            away = {place: abs(east / 2 + 0.25 - place.east) + abs(north / 2 + 0.25 - place.north) for place in HOT}
            near = any(min(queues[place]) - 0.5 <= km <= max(queues[place]) + 0.5 for place, km in away.items())
            right, wrong = right + near, wrong + (not near)
        for place, lengths in queues.items():
            longest = max(lengths)
            if longest >= 1.0 and lengths.index(longest) > 20:
                tails = [(int(place.east * 2), int((place.north + side * longest) * 2)) for side in (-1, 1)]
                assert any((east, north + off) in cells for east, north in tails for off in (-1, 0, 1)), place.name
                grown += 1
    assert grown >= 4
    assert wrong <= right / 20


@pytest.mark.parametrize(
    ("column", "kind", "complaint"),
    [
        ("speed", pa.string(), "column 'speed' is string; cast it"),
        ("time", pa.int64(), "column 'time' is int64; cast it"),
    ],
)
def test_a_column_of_another_type_is_named(column: str, kind: pa.DataType, complaint: str):
    schema = SCHEMA.set(SCHEMA.get_field_index(column), pa.field(column, kind))
    with pytest.raises(ConfigError, match=complaint):
        sp.Aggregate("area", end=sp.accumulate(END)).validate(schema)
