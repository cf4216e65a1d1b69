"""When routing pays, compared with rows lifted where they are read, with one partition of a pane per source task."""

from __future__ import annotations

from typing import Final, NamedTuple

import pandas as pd

from skypane.control.costs import DEFAULT_COSTS
from skypane.control.exchange import CONFIRM, Exchange
from skypane.control.predictions import ExpectedBatch, SourceSpread, SplittingOption
from skypane.operators.skyline import Skyline
from skypane.operators.topk import TopK
from skypane.preference import from_sense
from skypane.runtime.sim.cost_models import INDEPENDENT_8D, KERNELS, ResultSize
from skypane_papers.figure import Claim, Figure, Finding, Plot
from skypane_papers.rows import only

SOURCES: Final = (16, 64, 256)
WORKERS: Final = 16
ROWS: Final = (10_000, 100_000, 1_000_000, 10_000_000)
PANES: Final = (1, 10, 100)
OVERLAPS: Final = (1, 5)
QUERIES: Final = {"skyline": INDEPENDENT_8D, "top 100": ResultSize(100, 0)}
GROWTH: Final = {
    "skyline": Skyline(from_sense([f"c{at}" for at in range(8)], ["min"] * 8)).growth,
    "top 100": TopK(100, "c0").growth,
}
"""Growth of the results, as the queries report it to the engine's policy."""


class Batch(NamedTuple):
    """Rows of a batch, its panes, windows that hold a pane, partitions of the source, what is left of k rows."""

    rows: int
    panes: int
    overlap: int
    sources: int
    size: ResultSize

    @property
    def partitions(self) -> float:
        """Partitions of a pane whose rows stay where they are read."""
        return min(self.sources, self.rows / self.panes)

    @property
    def lift_seconds(self) -> float:
        """Lifting, evenly over the workers."""
        return KERNELS.tuple_base * self.rows / WORKERS

    def merge_seconds(self, partitions: float) -> float:
        """The window level, in the driver: each batch completes as many windows as panes."""
        rows = self.panes * partitions * float(self.size.of(self.rows / self.panes / partitions))
        return self.panes * DEFAULT_COSTS.window + rows * min(self.overlap, 3) * DEFAULT_COSTS.window_per_row

    @property
    def as_read(self) -> float:
        """Seconds of the batch whose rows stay."""
        return self.lift_seconds + self.merge_seconds(self.partitions)

    @property
    def routed(self) -> float:
        """Seconds of the batch whose rows are exchanged, so that panes are whole; the exchange is as even as the source."""
        return self.lift_seconds + DEFAULT_COSTS.exchanging(self.rows) + self.merge_seconds(1)

    def seconds(self, policy: Exchange) -> float:
        """Return the seconds of the side that the policy takes, once it has seen some batches like this one."""
        known = ExpectedBatch(
            dict.fromkeys(range(self.panes), self.rows // self.panes),
            WORKERS,
            (SplittingOption("PB_RR", self.rows // WORKERS, (1,) * self.panes),),
        )
        state = policy.init()
        for _ in range(CONFIRM):
            state, decision = policy.decide(policy.observe(state, self.spread()), known)
        return self.as_read if decision.value is None else self.routed

    def spread(self) -> SourceSpread:
        """Return the engine's measurements of the batch whose rows stay."""
        return SourceSpread(
            row_count=self.rows,
            busy=(KERNELS.tuple_base * self.rows / self.sources,) * self.sources,
            pane_rows=(self.rows // self.panes,) * self.panes,
            partials=round(self.panes * self.partitions),
            merge_seconds=self.merge_seconds(self.partitions),
            workers=WORKERS,
        )


def measure(quick: bool) -> pd.DataFrame:  # noqa: ARG001 - always quick
    """Return a row for each batch: both ways, and which one the policy takes."""
    rows = []
    for query, size in QUERIES.items():
        for batch in (Batch(r, p, o, s, size) for s in SOURCES for r in ROWS for p in PANES for o in OVERLAPS):
            best = min(batch.routed, batch.as_read)
            known, unknown = (batch.seconds(policy) for policy in (Exchange(growth=GROWTH[query]), Exchange()))
            rows.append(
                {"query": query, "sources": batch.sources, "rows": batch.rows, "panes": batch.panes}
                | {"overlap": batch.overlap, "as read": batch.as_read, "routed": batch.routed}
                | {
                    "gain": batch.as_read / batch.routed,
                    "regret": known / best - 1,
                    "regret unknown": unknown / best - 1,
                }
            )
    return pd.DataFrame(rows)


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the batches that routing changes by more than a tenth either way, or which the policy gets wrong."""
    return rows[(rows["gain"] > 1.1) | (rows["regret unknown"] > 0)].reset_index(drop=True)


def _pays(rows: pd.DataFrame) -> Finding:
    counts = [int((only(rows, sources=sources)["gain"] > 1).sum()) for sources in SOURCES]
    most = float(rows["gain"].max())
    of = len(rows) // len(SOURCES)
    ours = (
        f"in {', '.join(map(str, counts))} of {of} batches at 16, 64, 256 partitions; at best {most:.1f} times sooner"
    )
    return Finding(ours, counts == sorted(counts) and counts[-1] > 0)


def _skyline(rows: pd.DataFrame) -> Finding:
    worst = float(only(rows, query="skyline")["regret"].max())
    return Finding(f"within {worst:.0%}", worst <= 0.1)


def _top(rows: pd.DataFrame) -> Finding:
    worst = float(only(rows, query="top 100")["regret"].max())
    return Finding(f"within {worst:.0%}", worst <= 0.1)


def _unknown(rows: pd.DataFrame) -> Finding:
    top = only(rows, query="top 100")
    pairs = zip(top["regret unknown"], top["as read"], top["routed"], strict=True)
    regret, best = max((float(regret), min(float(read), float(routed))) for regret, read, routed in pairs)
    return Finding(f"within {regret:.0%} ({regret * best * 1e3:.0f} ms of a batch)", regret <= 0.1)


FIGURE = Figure(
    title="when routing pays: 16, 64 and 256 source partitions",
    regime=(
        f"A batch on {WORKERS} workers, with the costs of an exchange, a window and a merged row as they were fitted "
        "(control/costs.py): lifted where it is read, which cuts each pane into as many partitions as the source has, or "
        "exchanged first, so that panes are whole; the side that the engine's policy takes, over the better one. Seconds. Nothing depends on chance."
    ),
    measure=measure,
    summary=summary,
    claims=(
        Claim("routing pays more often the more source partitions there are", _pays),
        Claim("for skylines the engine's policy takes the right side within 10 %", _skyline),
        Claim("for a top-k too", _top),
        Claim(
            "for a user-defined query without a known growth of its results, such as this top-k taken for a skyline (0.75)",
            _unknown,
        ),
    ),
    plots=(
        Plot("", "Seconds left where they are read over seconds routed", "rows", "gain", "sources",
             {"query": "skyline", "panes": 100, "overlap": 5}, 1.0, log="xy"),
    ),
)  # fmt: skip
