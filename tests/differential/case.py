"""A case: rows as they come, the query over them, and what happens meanwhile. Plain values: nothing here knows skypane."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

IntArray: TypeAlias = NDArray[np.int64]

TIME, SOURCE, ID = "time", "source", "id"
"""Columns of every case: event time; who sent the row; what distinguishes rows (copies of a row share it)."""


@dataclass(frozen=True)
class Criterion:
    """What one column is wanted to be; `lo` and `hi` bound the target of "around", in the unit of the column."""

    column: str
    sense: str  # low, high, around
    lo: int | float | None = None
    hi: int | float | None = None


Component: TypeAlias = tuple[Criterion, ...]
"""Criteria of which the next counts only among equals of those before."""


@dataclass(frozen=True)
class Preference:
    """Levels of which the next counts only among equals; each a Pareto product of components. Groups are not compared."""

    levels: tuple[tuple[Component, ...], ...]
    groups: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are ranked."""
        return tuple(one.column for level in self.levels for component in level for one in component)


@dataclass(frozen=True)
class Skyline:
    preference: Preference
    by: tuple[str, ...] = ()


@dataclass(frozen=True)
class KDominant:
    k: int
    preference: Preference
    by: tuple[str, ...] = ()


@dataclass(frozen=True)
class TopDelta:
    delta: int
    preference: Preference
    by: tuple[str, ...] = ()


@dataclass(frozen=True)
class TopK:
    """`score` is a tree: a column's name, a number, or (operation, tree, ...)."""

    k: int
    score: Any
    by: tuple[str, ...] = ()
    largest: bool = True


@dataclass(frozen=True)
class Function:
    """An aggregate: `word` as in the package, of `columns`; `where` is a tree such as ("and", (">", "c0", 3), ("null", "c1"))."""

    name: str
    word: str
    columns: tuple[str, ...] = ()
    where: Any = None


@dataclass(frozen=True)
class Aggregate:
    """`required` are columns whose nulls are quarantined; `at_least` the least "n" of rows that are answered, `top` how many."""

    functions: tuple[Function, ...]
    by: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    at_least: int | None = None
    top: int | None = None


@dataclass(frozen=True)
class Continuous:
    """The front of the last `window` microseconds, emitted as it changes."""

    preference: Preference
    window: int
    by: tuple[str, ...] = ()


Spec: TypeAlias = "Skyline | KDominant | TopDelta | TopK | Aggregate | Continuous"


@dataclass(frozen=True)
class Windows:
    """[offset + k * slide, offset + k * slide + length), microseconds."""

    length: int
    slide: int
    offset: int = 0


@dataclass(frozen=True)
class Policy:
    """When a pane is complete: `word` with the `numbers` of the package's policy, lengths in microseconds.

    total   whether no row is late under it, however the rows are cut into batches
    """

    word: str
    numbers: tuple[tuple[str, Any], ...] = ()
    total: bool = True


@dataclass(frozen=True)
class Case:
    """Rows in order of arrival, and all that is done with them.

    batch    of each row, ascending: one event each; a number that is left out is an empty batch
    drains   batches after which all open windows are answered; at the end they always are
    chance   seed of what the ways to an answer choose: partitions, trees of merges, shards, restarts
    ways     the ways that are tried (ways/), by name
    """

    seed: int
    kind: str
    rows: pa.Table
    spec: Spec
    windows: Windows
    policy: Policy
    batch: IntArray
    drains: tuple[int, ...]
    chance: int
    ways: tuple[str, ...]

    @property
    def batches(self) -> list[pa.Table]:
        """The rows of each batch."""
        edges = np.searchsorted(self.batch, np.arange(int(self.batch.max(initial=0)) + 2)).tolist()
        return [self.rows.slice(begin, end - begin) for begin, end in pairwise(edges)]

    def take(self, which: Any) -> Case:
        """Return the case of some of the rows, by ascending index, each in its batch."""
        return replace(self, rows=self.rows.take(pa.array(which, pa.int64())), batch=self.batch[which])

    def rng(self, salt: int = 0) -> np.random.Generator:
        """Return what the choices of one way are drawn from."""
        return np.random.default_rng([self.chance, salt])

    def __str__(self) -> str:
        """The case in one paragraph."""
        kinds = ", ".join(f"{field.name} {field.type}" for field in self.rows.schema)
        return (
            f"{self.kind} of {self.rows.num_rows} rows ({kinds}) in {len(self.batches)} batches, drains after {self.drains}: "
            f"{self.spec}, {self.windows}, {self.policy}, chance {self.chance}, ways {', '.join(self.ways)}"
        )
