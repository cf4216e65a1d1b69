"""Whether rows have to move between tasks before they are lifted: an exchange costs a third of a batch.

Without one, every source partition is lifted where it is read. That is as good as routing as long as the partitions
are balanced and do not cut panes to pieces; both are measured on the last batch that ran without an exchange.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from skypane.control.costs import DEFAULT_COSTS, Costs

PROBE_EVERY = 50
"""Batches after which the source's own layout is looked at again: a busy source may have become an even one."""


CONFIRM = 3
"""Batches in a row in which an exchange would have paid, before one is made: the first batch of a query is slow for
reasons of its own, such as workers that load their kernels."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How the rows of one batch lay in the source's partitions.

    busy            seconds that each task lifted
    panes           distinct panes
    partials        (pane, task) pairs: panes, if none is cut
    merge_seconds   what the window-level query took
    """

    rows: int
    busy: tuple[float, ...]
    panes: int
    partials: int
    merge_seconds: float


@dataclass(frozen=True, slots=True)
class Exchange:
    """The decision, as a state: `needed` for the next batch, `because` of what, `age` batches ago.

    confirmed   batches in a row in which an exchange would have paid
    """

    needed: bool = False
    because: str = "nothing measured yet: rows stay where they are read"
    age: int = 0
    confirmed: int = 0

    def observe(self, layout: Layout | None, workers: int, costs: Costs = DEFAULT_COSTS) -> Exchange:
        """Return the decision for the next batch; `layout` is None if rows were exchanged, so nothing was learnt."""
        if layout is None:
            if self.age + 1 >= PROBE_EVERY:
                # One more batch like those before is enough to go on as before.
                because = f"looking at the source again after {PROBE_EVERY} batches"
                return Exchange(needed=False, because=because, confirmed=CONFIRM - 1)
            return replace(self, age=self.age + 1)
        if not layout.rows:
            return replace(self, age=0)
        pays, because = _pays(layout, workers, costs)
        confirmed = min(self.confirmed + 1, CONFIRM) if pays else 0
        return Exchange(needed=confirmed >= CONFIRM, because=because, confirmed=confirmed)


def _pays(layout: Layout, workers: int, costs: Costs) -> tuple[bool, str]:
    """Return whether an exchange would have paid for the batch, and the figures."""
    cost = costs.exchanging(layout.rows)
    idle = max(layout.busy, default=0.0) - sum(layout.busy) / max(workers, 1)
    cut = layout.partials / layout.panes if layout.panes else 1.0
    merging = layout.merge_seconds * (1 - 1 / cut)
    gain = idle + merging
    because = (
        f"balance would save {idle * 1e3:.0f} ms, whole panes {merging * 1e3:.0f} ms ({cut:.2f} partitions a pane), "
        f"an exchange costs {cost * 1e3:.0f} ms"
    )
    return gain > cost, because
