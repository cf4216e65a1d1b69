"""Preferences as values: low, high, around and diff build them, `*` and `&` combine them, best() returns the best rows.

    low("price") * high("rating")        Pareto: as good in both and better in one
    low("price") & high("rating")        prioritised: the rating counts only among equal prices
    diff("city") * low("price")          one comparison per city; a null city is a group of its own

The model is Kiessling's ("Foundations of Preferences in Database Systems", VLDB 2002): strict partial orders, closed
under both operators. Two values are equal for a preference when it ranks them alike (his regular substitutable values);
for around() that means the same distance. A chain of Pareto products is the most general form that can be evaluated
with a few sorted columns and one skyline per level. Other forms raise a ConfigError that names the nearest supported
form.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa

from skypane.kernels.column_layout import MAX_COLUMNS
from skypane.naming import shortened
from skypane.preference import preference_text
from skypane.preference.column import ColumnLike, Columns, column_name
from skypane.preference.column_checks import check_criterion, check_group, column_names
from skypane.preference.criteria import Around, Component, Criterion, High, Level, Low, Target
from skypane.preference.groups import group_codes
from skypane.preference.maximal import maximal_indices
from skypane.preference.orient import OrientedPoints, orient
from skypane.preference.written import identity
from skypane.types import ConfigError, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Preference:
    """A strict partial order on rows: levels compared one after the other, each a Pareto product of components.

    Two preferences are equal if they always prefer the same rows; the order of factors and of groups does not matter.

    >>> preference = sp.low("price") * sp.high("rating")
    >>> preference == sp.parse("rating MAX, price MIN")
    True
    >>> preference.columns
    ('price', 'rating')
    """

    levels: tuple[Level, ...]
    #: columns on which two rows must agree to be compared
    groups: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        widest = max(map(len, self.levels), default=0)
        if widest > MAX_COLUMNS:
            raise ConfigError(
                f"{widest} criteria in one Pareto product of {shortened(repr(self))}; at most {MAX_COLUMNS} can be "
                f"compared at once, and with so many hardly any row is better than another: rank some after the "
                f"others with &, or combine them in a score"
            )
        times = Counter(map(identity, self.columns))
        repeated = [column for column in self.columns if times[identity(column)] > 1]
        if repeated:
            raise ConfigError(
                f"column {repeated[0]!r} is named twice in {shortened(repr(self))}; give each column one direction"
            )

    @classmethod
    def of(cls, preference: Preference | str) -> Preference:
        """Return `preference`, parsing it first if it is text such as "price MIN, rating MAX"."""
        if isinstance(preference, Preference):
            return preference
        if isinstance(preference, str):
            return parse(preference)
        raise ConfigError(
            f'preference must be one such as low("price") * high("rating"), or a text such as "price MIN, rating MAX", '
            f"got {preference!r}"
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns: those of diff(), then the ranked ones in the order written."""
        return self.groups + self.ranked

    @property
    def ranked(self) -> tuple[str, ...]:
        """Columns with a direction; they must not hold null or NaN."""
        return tuple(criterion.column for criterion in self.criteria)

    @property
    def criteria(self) -> tuple[Criterion, ...]:
        return tuple(criterion for level in self.levels for component in level for criterion in component)

    def __mul__(self, other: Preference) -> Preference:
        """Return the Pareto product, in which both count equally; it is commutative and associative."""
        if not isinstance(other, Preference):
            return NotImplemented
        return _product((self, other))

    def __and__(self, other: Preference) -> Preference:
        """Return the prioritised preference: `other` counts only among rows equal for this one; it is associative."""
        if not isinstance(other, Preference):
            return NotImplemented
        return _chain((self, other))

    def validate(self, schema: pa.Schema) -> None:
        """Raise ConfigError, naming column and type, if rows of `schema` cannot be compared."""
        for criterion in self.criteria:
            check_criterion(schema, criterion)
        for column in self.groups:
            check_group(schema, column)

    def orient(self, table: pa.Table) -> FloatArray:
        """Return the points of a single Pareto level, shape (n, d), float64, Fortran-ordered, smaller is better.

        There is one column per factor of `*`; a factor that is a chain becomes its lexicographic rank. Groups are
        ignored. Raises BadInputError, naming the column, if a criterion is null or NaN.
        """
        return self.points(table).values

    def points(self, table: pa.Table) -> OrientedPoints:
        """Return the points of orient(), and whether they may be compared with points of other tables."""
        return orient(table, self.require_flat("points"))

    def best(self, table: pa.Table, by: Columns = ()) -> IntArray:
        """Return the indices of the best rows, ascending, shape (m,): those than which no other row is better.

        Rows are compared only with rows that agree on the columns of `by` and of diff(). Rows that are equal on all
        criteria are all kept. Raises BadInputError, naming the column, if a criterion is null or NaN in a row that is
        compared.
        """
        return maximal_indices(table, self.levels, group_codes(table, self.group_columns(by)))

    def group_columns(self, by: Columns = ()) -> tuple[str, ...]:
        """Return the columns of `by` and of diff() without repetition."""
        return column_names((*column_names(by, "by"), *self.groups), "by")

    def require_flat(self, what: str) -> Level:
        """Return the only level; raise ConfigError, whose message begins with `what`, unless there is exactly one."""
        if len(self.levels) != 1:
            raise ConfigError(f"{what} need a product of criteria without & at the top, got {self!r}")
        return self.levels[0]

    def describe(self) -> dict[str, Any]:
        """Return a JSON value; two preferences are equal exactly if their JSON values are."""
        levels = ([[_described(c) for c in component] for component in level] for level in self.levels)
        return {"groups": sorted(self.groups), "levels": [sorted(level, key=json.dumps) for level in levels]}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Preference) and self.describe() == other.describe()

    def __hash__(self) -> int:
        return hash(frozenset(self.columns))

    def __str__(self) -> str:
        """Return the text form, which parse() reads."""
        return preference_text.write(self.levels, self.groups)

    def __repr__(self) -> str:
        groups = [f"diff({column!r})" for column in self.groups]
        products = [[_shown(component) for component in level] for level in self.levels] or [[]]
        products[0][:0] = groups
        return " & ".join(" * ".join(product) for product in products)


def low(column: ColumnLike) -> Preference:
    """Return the preference for smaller values of `column`.

    >>> sp.skyline(offers, sp.low("price") * sp.high("rating")).select("price", "rating").orderBy("price").show()
    +-----+------+
    |price|rating|
    +-----+------+
    | 60.0|   4.4|
    | 90.0|   4.5|
    | 95.0|   4.8|
    +-----+------+
    """
    return _single(Low(column_name(column, "low()")))


def high(column: ColumnLike) -> Preference:
    """Return the preference for larger values of `column`.

    >>> sp.skyline(offers, sp.high("rating")).select("price", "rating").show()
    +-----+------+
    |price|rating|
    +-----+------+
    | 95.0|   4.8|
    +-----+------+
    """
    return _single(High(column_name(column, "high()")))


def around(column: ColumnLike, target: Target | tuple[Target, Target]) -> Preference:
    """Return the preference for values of `column` near to `target`.

    The target is a number, a date or a datetime, or an interval (lo, hi) of them. Values at the same distance, and all
    values inside the interval, are equal for the preference.

    >>> sp.skyline(offers, sp.around("price", 78)).select("price").show()
    +-----+
    |price|
    +-----+
    | 80.0|
    +-----+
    >>> between = sp.around("price", (70, 80))  # all values of the interval are as good
    >>> sp.skyline(offers, between).select("price").orderBy("price").show()
    +-----+
    |price|
    +-----+
    | 70.0|
    | 75.0|
    | 80.0|
    +-----+
    """
    lo, hi = target if isinstance(target, tuple) else (target, target)
    return _single(Around(column_name(column, "around()"), lo, hi))


def diff(column: ColumnLike) -> Preference:
    """Return the preference that compares only rows that agree on `column`: one skyline per value; null is a value.

    >>> best = sp.skyline(offers, sp.diff("city") * sp.low("price"))  # the best of each city
    >>> best.select("city", "price").orderBy("city").show()
    +-----+-----+
    | city|price|
    +-----+-----+
    |Basel| 60.0|
    | Bern| 70.0|
    +-----+-----+
    """
    return Preference((), (column_name(column, "diff()"),))


def parse(preference: str) -> Preference:
    """Return the preference written as text, e.g. "price MIN, rating MAX, city DIFF".

    preference_text.py has the grammar.

    >>> sp.parse("price MIN, rating MAX") == sp.low("price") * sp.high("rating")
    True
    """
    return _built(preference_text.read(preference))


def from_sense(columns: Sequence[str], sense: Sequence[str]) -> Preference:
    """Return the Pareto product of `columns` with paretoset's directions, each "min", "max" or "diff".

    >>> sp.from_sense(["price", "city"], ["min", "diff"])
    diff('city') * low('price')
    """
    makers = {"min": low, "max": high, "diff": diff}
    if len(columns) != len(sense) or not columns:
        raise ConfigError(f"sense must have one entry per column, got {len(columns)} columns and {len(sense)} senses")
    for column, one in zip(columns, sense, strict=True):
        if one not in makers:
            raise ConfigError(f"column {column!r}: sense must be 'min', 'max' or 'diff', got {one!r}")
    return _product([makers[one](column) for column, one in zip(columns, sense, strict=True)])


def _single(criterion: Criterion) -> Preference:
    return Preference((((criterion,),),))


def _built(tree: preference_text.Tree) -> Preference:
    match tree:
        case preference_text.Product(terms):
            return _product([_built(term) for term in terms])
        case preference_text.Chain(terms):
            return _chain([_built(term) for term in terms])
        case preference_text.Diff(column):
            return Preference((), (column_name(column, "preference"),))
    return _single(replace(tree, column=column_name(tree.column, "preference")))


def _product(factors: Sequence[Preference]) -> Preference:
    """Return the Pareto product of all factors, built at once: one factor at a time would take quadratic time."""
    groups = tuple(column for factor in factors for column in factor.groups)
    ranking = [factor for factor in factors if factor.levels]
    if len(ranking) < 2:
        return Preference(ranking[0].levels if ranking else (), groups)
    components: list[Component] = []
    for factor in ranking:
        if not _is_factor(factor):
            whole = shortened(" * ".join(f"({one!r})" for one in factors))
            raise ConfigError(
                f"a Pareto product inside & cannot be a factor of *: {whole}; "
                f"write the products as whole levels, (a * b) & c, or chains of single criteria as factors, (a & b) * c"
            )
        components.extend(_components(factor))
    return Preference((tuple(components),), groups)


def _chain(preferences: Sequence[Preference]) -> Preference:
    """Return the prioritised chain: each preference counts only among rows that the ones before it rank equal."""
    first, *others = preferences
    for other in others:
        if other.groups:
            raise ConfigError(
                f"diff({other.groups[0]!r}) cannot be on the right of &: groups are formed before rows are ranked; "
                f"write diff({other.groups[0]!r}) * (...)"
            )
    return Preference(tuple(level for one in preferences for level in one.levels), first.groups)


def _is_factor(preference: Preference) -> bool:
    return len(preference.levels) == 1 or all(len(level) == 1 for level in preference.levels)


def _components(factor: Preference) -> tuple[Component, ...]:
    """Return the components that a factor adds to a product; a chain of single criteria is one component."""
    if len(factor.levels) == 1:
        return factor.levels[0]
    return (tuple(criterion for (component,) in factor.levels for criterion in component),)


def _shown(component: Component) -> str:
    return repr(component[0]) if len(component) == 1 else f"({' & '.join(map(repr, component))})"


def _described(criterion: Criterion) -> list[Any]:
    if isinstance(criterion, Around):
        interval = (criterion.lo, criterion.hi)
        return [criterion.column, "around", *map(_recorded, interval)]
    return [criterion.column, "low" if isinstance(criterion, Low) else "high"]


def _recorded(target: Target) -> int | float | str:
    if isinstance(target, date):
        return target.isoformat()
    return str(target) if isinstance(target, Decimal) else target
