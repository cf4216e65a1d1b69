"""The skyline query: the rows of a window for which no row of their group is better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from skypane.operators.by_preference import ByPreference, one_per, take_rows
from skypane.operators.sliding_skyline import SlidingSkyline, sliding_skyline


@dataclass(frozen=True, init=False)
class Skyline(ByPreference):
    """Skyline query (paper 1, section 2.1): all rows, with all their columns, that are best under `preference`.

    A partial is the skyline of the rows lifted so far. Rows equal on all criteria are all kept, so rows that are lifted
    twice appear twice. combine is idempotent in that a partial stays unchanged when combined with rows it dominates.

    >>> best = sp.ask(offers, sp.Skyline("price MIN, rating MAX", by="city"))
    >>> best.select("city", "price", "rating").orderBy("price").show()
    +-----+-----+------+
    | city|price|rating|
    +-----+-----+------+
    |Basel| 60.0|   4.4|
    | Bern| 70.0|   4.1|
    |Basel| 90.0|   4.5|
    | Bern| 95.0|   4.8|
    +-----+-----+------+
    """

    def lift(self, rows: pa.Table) -> pa.Table:
        return take_rows(rows, self.preference.best(rows, self.by))

    def queue(self, schema: pa.Schema, panes: int) -> SlidingSkyline | None:
        """Return a queue that compares each row once, however many windows hold it; None as for sliding_skyline()."""
        lower = None if type(self).lower is ByPreference.lower else self.lower
        return sliding_skyline(self.preference, self.groups, schema, panes, lower)

    def describe(self) -> dict[str, Any]:
        levels = self.preference.describe()["levels"]
        return {"query": "skyline", "levels": levels, "by": sorted(self.groups)}

    def __str__(self) -> str:
        """Return a short description of the query."""
        return f"skyline of {self.preference}{one_per(self.by)}"
