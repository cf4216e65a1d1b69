"""Preferences as values: built by low, high, around, diff, put together by `*` and `&`, asked for the best rows.

    low("price") * high("rating")        Pareto: as good in both and better in one
    low("price") & high("rating")        prioritised: the rating counts only among equal prices
    diff("city") * low("price")          one comparison per city; a null city is a group of its own

The model is Kiessling's ("Foundations of Preferences in Database Systems", VLDB 2002): strict partial orders, closed under
both operators. Two values are equal for a preference when it ranks them alike (his regular substitutable values), which for
around() means the same distance. A chain of Pareto products is the most general form that stays a few sorted columns and a
skyline per level; what lies outside is refused with the nearest thing that can be written.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from skypane.kernels.layout import MAX_COLUMNS
from skypane.naming import shortened
from skypane.preference import text
from skypane.preference.column import ColumnLike, Columns, column_name
from skypane.preference.criteria import Around, Component, Criterion, High, Level, Low, Target
from skypane.preference.groups import group_codes
from skypane.preference.maximal import maximal_indices
from skypane.preference.orient import Points, orient
from skypane.preference.schema import check_criterion, check_group, column_names
from skypane.types import ConfigError, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Preference:
    """A strict partial order on rows: levels compared one after the other, each a Pareto product of components.

    Equal when the same rows are always better: the order of factors and of groups does not count.
    """

    levels: tuple[Level, ...]
    #: columns on which rows must agree to be compared at all
    groups: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        widest = max(map(len, self.levels), default=0)
        if widest > MAX_COLUMNS:
            raise ConfigError(
                f"{widest} criteria side by side in {shortened(repr(self))}; at most {MAX_COLUMNS} can be compared at once, "
                f"and of so many hardly a row is better than another: rank some after the others with &, or make a score"
            )
        repeated = [column for column, count in Counter(self.columns).items() if count > 1]
        if repeated:
            raise ConfigError(
                f"column {repeated[0]!r} is named twice in {shortened(repr(self))}; each column may have one direction"
            )

    @classmethod
    def of(cls, preference: Preference | str) -> Preference:
        """Return `preference`, reading it first if it is text such as "price MIN, rating MAX"."""
        if isinstance(preference, Preference):
            return preference
        if isinstance(preference, str):
            return parse(preference)
        raise ConfigError(f'need a preference such as low("price") * high("rating"), or its text, got {preference!r}')

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns: the groups', then the ranked ones in the order written."""
        return self.groups + self.ranked

    @property
    def ranked(self) -> tuple[str, ...]:
        """Columns with a direction; null and NaN have no place in them."""
        return tuple(criterion.column for criterion in self.criteria)

    @property
    def criteria(self) -> tuple[Criterion, ...]:
        return tuple(criterion for level in self.levels for component in level for criterion in component)

    def __mul__(self, other: Preference) -> Preference:
        """Pareto product: both count equally. Commutative and associative."""
        if not isinstance(other, Preference):
            return NotImplemented
        return _product((self, other))

    def __and__(self, other: Preference) -> Preference:
        """Prioritised: `other` counts only among rows that this preference ranks equal. Associative."""
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

        One column per factor of `*`; a factor that is a chain becomes its lexicographic rank. Groups are not looked at.
        BadInputError naming the column if a criterion is null or NaN.
        """
        return self.points(table).values

    def points(self, table: pa.Table) -> Points:
        """Return what orient() does, and whether those points may be compared with points of other tables."""
        return orient(table, self.require_flat("points"))

    def best(self, table: pa.Table, by: Columns = ()) -> IntArray:
        """Return the indices of the rows that no other row is better than, ascending, shape (m,).

        Rows are compared only with rows that agree on the columns of `by` and of diff(). Rows that are equal on all
        criteria are all kept. BadInputError naming the column if a criterion is null or NaN in a row looked at.
        """
        return maximal_indices(table, self.levels, group_codes(table, self.group_columns(by)))

    def group_columns(self, by: Columns = ()) -> tuple[str, ...]:
        """Return the columns of `by` and of diff(), each once."""
        return column_names((*column_names(by, "by"), *self.groups), "by")

    def require_flat(self, what: str) -> Level:
        """Return the one level; ConfigError, saying that `what` needs it, if there is not exactly one."""
        if len(self.levels) != 1:
            raise ConfigError(f"{what} need a product of criteria without & at the top, got {self!r}")
        return self.levels[0]

    def describe(self) -> dict[str, Any]:
        """Return a JSON value, equal for two preferences exactly when they are equal."""
        levels = ([[_described(c) for c in component] for component in level] for level in self.levels)
        return {"groups": sorted(self.groups), "levels": [sorted(level, key=json.dumps) for level in levels]}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Preference) and self.describe() == other.describe()

    def __hash__(self) -> int:
        return hash(frozenset(self.columns))

    def __str__(self) -> str:
        """The text form, which parse() reads back."""
        return text.write(self.levels, self.groups)

    def __repr__(self) -> str:
        groups = [f"diff({column!r})" for column in self.groups]
        products = [[_shown(component) for component in level] for level in self.levels] or [[]]
        products[0][:0] = groups
        return " & ".join(" * ".join(product) for product in products)


def low(column: ColumnLike) -> Preference:
    """Smaller values of `column` are better."""
    return _single(Low(column_name(column, "low()")))


def high(column: ColumnLike) -> Preference:
    """Larger values of `column` are better."""
    return _single(High(column_name(column, "high()")))


def around(column: ColumnLike, target: Target | tuple[Target, Target]) -> Preference:
    """Values of `column` nearer to `target` are better: a number, date or datetime, or an interval (lo, hi) of them.

    Values at the same distance, and all values inside the interval, are equal for the preference.
    """
    lo, hi = target if isinstance(target, tuple) else (target, target)
    return _single(Around(column_name(column, "around()"), lo, hi))


def diff(column: ColumnLike) -> Preference:
    """Compare only rows that agree on `column`: one front for each of its values, nulls being one of them."""
    return Preference((), (column_name(column, "diff()"),))


def parse(preference: str) -> Preference:
    """Return the preference written as text, e.g. "price MIN, rating MAX, city DIFF"; see text.py for the grammar.

    >>> parse("price MIN, rating MAX") == low("price") * high("rating")
    True
    """
    return _built(text.read(preference))


def from_sense(columns: Sequence[str], sense: Sequence[str]) -> Preference:
    """Return the Pareto product of `columns` with paretoset's directions, each "min", "max" or "diff".

    >>> from_sense(["price", "city"], ["min", "diff"])
    diff('city') * low('price')
    """
    makers = {"min": low, "max": high, "diff": diff}
    if len(columns) != len(sense) or not columns:
        raise ConfigError(f"need one sense per column, got {len(columns)} columns and {len(sense)} senses")
    for column, one in zip(columns, sense, strict=True):
        if one not in makers:
            raise ConfigError(f"column {column!r}: sense must be 'min', 'max' or 'diff', got {one!r}")
    return _product([makers[one](column) for column, one in zip(columns, sense, strict=True)])


def _single(criterion: Criterion) -> Preference:
    return Preference((((criterion,),),))


def _built(tree: text.Tree) -> Preference:
    match tree:
        case text.Product(terms):
            return _product([_built(term) for term in terms])
        case text.Chain(terms):
            return _chain([_built(term) for term in terms])
        case text.Diff(column):
            return diff(column)
    return _single(tree)


def _product(factors: Sequence[Preference]) -> Preference:
    """Return the Pareto product of all factors, in one step: a step for each would take time with their square."""
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
    """Return all of them one after the other, each of which counts only among rows that those before it rank equal."""
    first, *others = preferences
    for other in others:
        if other.groups:
            raise ConfigError(
                f"diff({other.groups[0]!r}) cannot stand on the right of &: groups are formed before anything is ranked; "
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
        return [criterion.column, "around", *(t if isinstance(t, int | float) else t.isoformat() for t in interval)]
    return [criterion.column, "low" if isinstance(criterion, Low) else "high"]
