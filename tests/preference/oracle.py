"""What a preference means, from the definition: a relation on two rows, recursive over how the preference was written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from skypane.preference import Preference, around, diff, high, low

Row: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class Leaf:
    kind: str  # low, high, around, diff
    column: str
    target: Any = None

    def better(self, t: Row, u: Row) -> bool:
        return self.kind != "diff" and bool(self._badness(t) < self._badness(u))

    def equal(self, t: Row, u: Row) -> bool:
        return bool(self._badness(t) == self._badness(u))

    def build(self) -> Preference:
        if self.kind == "around":
            return around(self.column, self.target)
        return {"low": low, "high": high, "diff": diff}[self.kind](self.column)

    def _badness(self, row: Row) -> Any:
        value = row[self.column]
        if self.kind == "around":
            return abs(value - self.target)
        return _Reversed(value) if self.kind == "high" else value


@dataclass(frozen=True)
class Pareto:
    """Better in one, and better or equal in the other."""

    left: Tree
    right: Tree

    def better(self, t: Row, u: Row) -> bool:
        left, right = self.left, self.right
        return (left.better(t, u) and (right.better(t, u) or right.equal(t, u))) or (
            left.equal(t, u) and right.better(t, u)
        )

    def equal(self, t: Row, u: Row) -> bool:
        return self.left.equal(t, u) and self.right.equal(t, u)

    def build(self) -> Preference:
        return self.left.build() * self.right.build()


@dataclass(frozen=True)
class Prior:
    """Better on the left, or equal there and better on the right."""

    left: Tree
    right: Tree

    def better(self, t: Row, u: Row) -> bool:
        return self.left.better(t, u) or (self.left.equal(t, u) and self.right.better(t, u))

    def equal(self, t: Row, u: Row) -> bool:
        return self.left.equal(t, u) and self.right.equal(t, u)

    def build(self) -> Preference:
        return self.left.build() & self.right.build()


Tree: TypeAlias = "Leaf | Pareto | Prior"


@dataclass(frozen=True)
class _Reversed:
    value: Any

    def __lt__(self, other: _Reversed) -> bool:
        return bool(other.value < self.value)


def best(tree: Tree, table: pa.Table, by: Sequence[str] = ()) -> list[int]:
    """Rows that no row with the same values in `by` is better than."""
    rows = table.to_pylist()

    def beaten(u: Row) -> bool:
        return any(tree.better(t, u) and all(t[c] == u[c] for c in by) for t in rows)

    return [i for i, u in enumerate(rows) if not beaten(u)]
