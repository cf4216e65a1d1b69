"""The streams that are killed, a row each: the query, its sinks, what happens to it beside kills, and what it must come to."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from tests.chaos import checking
from tests.chaos.checking import Check
from tests.chaos.naive import CONTINUOUS, EVERY, LENGTH, SHARED, SLIDE, WITHIN

import skypane as sp
from skypane.operators.amendments import AmendRule
from skypane.operators.fronts import ContinuousSkyline
from skypane.plan import ContinuousPlan, Plan
from skypane.shared_plan import SharedPlan
from skypane.windows import Windows

FILE: Final = 9_000
"""Bytes of a file in which answers and late rows wait: those of a few batches."""
WINDOWS: Final = Windows(LENGTH, SLIDE)
BEST: Final = sp.Skyline("price MIN, rating MAX", "sensor")
SUMS: Final = sp.Aggregate("sensor", required="price", n=sp.count(), total=sp.sum("weight"), low=sp.min("price"))
FEWER: Final = sp.Aggregate("sensor", required="price", n=sp.count(), total=sp.sum("weight"))
"""A query that a stream of SUMS may go on with."""
DELAY: Final = sp.Watermark("1 second")
HOLDS: Final = sp.KSlack(max_ahead="1 minute", support=60)
"""A policy that holds the rows which come after a pause of minutes, until there are many."""
GIVES_UP: Final = sp.KSlack(patience=60)
"""A policy that quarantines the rows of clocks that are wrong before the end of the stream."""


@dataclass(frozen=True)
class Scenario:
    """A stream.

    check     what it must have come to
    later     the plan from batch `changed` on; None: the same
    late      from which batch on it may have a late sink
    drained   after which batch it may be drained; -1: none
    drains    whether it is drained after every other batch, too
    readmits  the batches after which rows without a price come a second time, with one
    rolls     whether answers and late rows wait for a file of several batches
    collides  whether a driver may stand still while another takes over: not if what it has decided before would be refused
    rows      arguments of naive.rows()
    """

    plan: Plan | SharedPlan | ContinuousPlan
    check: Check
    later: Plan | None = None
    late: tuple[int, ...] = (0, 0, 3)
    drained: tuple[int, ...] = (-1, 2, 4)
    drains: bool = False
    readmits: Collection[int] = ()
    rolls: bool = False
    collides: bool = True
    rows: Mapping[str, float] = field(default_factory=dict)


SCENARIOS: Final[Mapping[str, Scenario]] = {
    "skyline": Scenario(Plan(BEST, WINDOWS, "ts", sp.Watermark("20 seconds")), checking.skylines),
    "sums": Scenario(Plan(SUMS, WINDOWS, "ts", sp.Watermark("20 seconds")), checking.sums),
    "continuous": Scenario(
        ContinuousPlan(
            query=ContinuousSkyline("price MIN, rating MAX", "ts", LENGTH, ("sensor",)),
            windows=Windows(CONTINUOUS, CONTINUOUS), time="ts", progress=sp.Watermark("20 seconds"),
        ),
        checking.updates,
    ),
    "shared": Scenario(
        SharedPlan({
            "skyline": Plan(BEST, Windows(*SHARED["skyline"]), "ts", sp.Watermark("20 seconds")),
            "sums": Plan(SUMS, Windows(*SHARED["sums"]), "ts", sp.Watermark("20 seconds")),
        }),
        checking.each_of_several,
    ),
    "amended": Scenario(Plan(BEST, WINDOWS, "ts", DELAY, amend=AmendRule(WITHIN)), checking.versions),
    "amended by a share": Scenario(
        Plan(BEST, WINDOWS, "ts", sp.AqKSlack(max_amended=0.3, reserve=1), amend=AmendRule(WITHIN)), checking.versions
    ),
    "early": Scenario(Plan(BEST, WINDOWS, "ts", DELAY, amend=AmendRule(WITHIN), early=EVERY), checking.early_versions),
    "early as changes": Scenario(
        Plan(BEST, WINDOWS, "ts", DELAY, amend=AmendRule(WITHIN, changes=True), early=EVERY), checking.changes
    ),
    "rolling": Scenario(Plan(BEST, WINDOWS, "ts", sp.Watermark("20 seconds")), checking.skylines, rolls=True),
    "stays": Scenario(Plan(BEST, WINDOWS, "ts", sp.Watermark("20 seconds"), answers="stays"), checking.stays),
    "held": Scenario(Plan(BEST, WINDOWS, "ts", HOLDS), checking.held, late=(0,), drained=(-1,), rows={"pause": 600}),
    "given up": Scenario(
        Plan(BEST, WINDOWS, "ts", GIVES_UP), checking.given_up, late=(0,), drained=(-1,), rows={"ahead": 0.02}
    ),
    "drains": Scenario(
        Plan(BEST, WINDOWS, "ts", DELAY, amend=AmendRule(WITHIN), early=EVERY), checking.early_versions,
        drains=True, rolls=True,
    ),
    "changed": Scenario(
        Plan(SUMS, WINDOWS, "ts", sp.Watermark("20 seconds")), checking.sums_of_two_queries,
        later=Plan(FEWER, WINDOWS, "ts", sp.Watermark("20 seconds")), late=(0,), drained=(-1, 1, 5), collides=False,
    ),
    "readmitted": Scenario(
        Plan(BEST, WINDOWS, "ts", DELAY, amend=AmendRule(WITHIN)), checking.versions,
        late=(0,), readmits=(2, 5), rows={"blank": 0.08},
    ),
}  # fmt: skip
