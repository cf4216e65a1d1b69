"""Which rows a point of a prefilter drops, from the definition of a preference: the condition that Spark evaluates."""

from __future__ import annotations

from functools import reduce
from typing import Any

from tests.preference.oracle import Leaf, Prior, Row, Tree

from skypane.operators.witnessed_points import Prefilter
from skypane.preference.criteria import Around, Component, Criterion, Low


def as_good(rules: Prefilter, one: Row, other: Row) -> bool:
    """Whether a row is of the other's group, and as good as it on each component of the level."""
    components = [tree(component) for component in rules.level]
    compared = all(tree.better(one, other) or tree.equal(one, other) for tree in components)
    return compared and all(_same(one[column], other[column]) for column in rules.groups)


def drops(rules: Prefilter, point: Row, row: Row) -> bool:
    """Whether a point drops a row: it is as good, and strictly better on the leading component."""
    return as_good(rules, point, row) and tree(rules.level[rules.lead]).better(point, row)


def tree(component: Component) -> Tree:
    """Return a component as the definition takes it."""
    leaves: list[Tree] = [_leaf(criterion) for criterion in component]
    return reduce(Prior, leaves)


def _leaf(criterion: Criterion) -> Leaf:
    if isinstance(criterion, Around):
        lo, hi = criterion.lo, criterion.hi
        return Leaf("around", criterion.column, lo) if lo == hi else _Interval("around", criterion.column, (lo, hi))
    return Leaf("low" if isinstance(criterion, Low) else "high", criterion.column)


class _Interval(Leaf):
    """A criterion whose target is an interval."""

    def _badness(self, row: Row) -> Any:
        (lo, hi), value = self.target, row[self.column]
        return max(lo - value, value - hi, 0)


def _same(one: Any, other: Any) -> bool:
    """Whether values of a group are the same: NaN is one value, as null is."""
    return bool(one == other or (one != one and other != other))  # noqa: PLR0124 - NaN
