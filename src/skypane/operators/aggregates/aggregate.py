"""Aggregates per key as a query: one row for each key of a window, with the value of each function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from skypane.kernels import keyed
from skypane.kernels.column_layout import frozen
from skypane.kernels.families import AGGREGATES
from skypane.operators.aggregates.functions import Function
from skypane.operators.aggregates.grouping import dense_codes, distinct_keys
from skypane.operators.aggregates.having import AnswerFilter
from skypane.operators.aggregates.sliding_aggregates import SlidingStates
from skypane.operators.aggregates.state_layout import StateLayout, layout_of
from skypane.operators.aggregates.state_parts import EvaluatedRows
from skypane.operators.aggregates.wide_states import InOrderPart
from skypane.operators.by_preference import one_per
from skypane.operators.key_parts import have_parts, rows_of_part
from skypane.operators.query import Query, is_of_package
from skypane.preference import ColumnLike, Columns
from skypane.preference.column import column_name, is_spark_column
from skypane.preference.column_checks import check_group, column_names, field_of
from skypane.preference.written import identity
from skypane.types import ConfigError, IntArray

TOGETHER = 50_000
"""Maximum number of rows of several panes that are lifted at once: columns and states then stay in the cache, and freed
memory is reused. A million rows of 16,384 keys in 120 panes took 82 ms of a core at once, and 44 ms with this limit."""


@dataclass(frozen=True, init=False)
class Aggregate(Query):
    """Aggregate functions per key: Aggregate(by="shop", n=sp.count(), total=sp.sum("amount")).

    A key is the combination of a row's values in the columns of `by`; null is a value, all NaNs are one value, and -0.0
    equals 0.0. Without `by` there is one key. Null values are skipped, as in SQL, not quarantined. A row of the answer
    has the columns of `by`, then one column for each function.

    time       column that is the default order of first, last and collect_list
    required   columns in which a null or NaN is not skipped: such a row is quarantined, with its reason
    having     a condition on rows of the answer: only rows for which it is true are returned. Workers evaluate
               comparisons of columns, numbers and texts; Spark evaluates any other SQL, and Columns, on the answers that
               workers have made, and then without `top`
    top        number of these rows to return, with the largest `rank_by`; ties are broken by content, the least first
    rank_by    a column of the answer
    functions  the functions, by the names of their columns in the answer; those for which no keyword is left, such as
               {"top": sp.max("price")}, come before those that are keywords

    A partial has one row per key: the key columns, the integer state as one list of fixed size, and columns for other
    states. It depends on the rows alone, to the bit, and not on their order; this includes sums of floating-point
    numbers.

    >>> query = sp.Aggregate("city", n=sp.count(), cheapest=sp.min("price"), having="n > 1")
    >>> sp.ask(offers, query).orderBy("city").show()
    +-----+---+--------+
    | city|  n|cheapest|
    +-----+---+--------+
    |Basel|  4|    60.0|
    | Bern|  2|    70.0|
    +-----+---+--------+
    """

    #: one answer per distinct value of these columns
    by: tuple[str, ...]
    functions: tuple[tuple[str, Function], ...]
    choice: AnswerFilter
    needs: tuple[str, ...]

    kernel_families: ClassVar[Sequence[str]] = (AGGREGATES,)

    def __init__(
        self,
        by: Columns = (),
        *,
        time: ColumnLike | None = None,
        required: Columns = (),
        having: ColumnLike | None = None,
        top: int | None = None,
        rank_by: str | None = None,
        functions: Mapping[str, Function] | None = None,
        **named: Function,
    ) -> None:
        every = _functions(functions or {}, named)
        order = None if time is None else column_name(time, "time")
        object.__setattr__(self, "by", column_names(by, "by"))
        object.__setattr__(self, "needs", column_names(required, "required"))
        object.__setattr__(self, "choice", AnswerFilter(having, top, rank_by))  # type: ignore[arg-type] # a Column becomes a text
        object.__setattr__(self, "functions", tuple((name, one.in_time(order)) for name, one in every.items()))
        self._check_names()

    @property
    def required(self) -> tuple[str, ...]:
        """The columns of `required`; in other columns a null is a key, or is skipped."""
        return self.needs

    @property
    def growth(self) -> float:
        """0, as long as keys recur: a partial has one row per key."""
        return 0.0

    def reads(self, schema: pa.Schema) -> tuple[str, ...]:
        wanted = self._columns
        return tuple(name for name in schema.names if name in wanted)

    def validate(self, schema: pa.Schema) -> None:
        self._check_names()  # again: expressions have names since then
        for column in self.by:
            check_group(schema, column)
        for column in (*self.needs, *self._function_columns()):
            field_of(schema, column)
        self._layout(schema).validate()
        self.choice.validate(self._layout(schema).answers)

    def lift(self, rows: pa.Table) -> pa.Table:
        return self.lift_panes(rows, [0])[0]

    def lift_panes(self, rows: pa.Table, starts: Sequence[int]) -> Sequence[pa.Table]:
        rows = rows.combine_chunks()
        partials: list[pa.Table] = []
        edges = [*starts, rows.num_rows]
        for first, last in pairwise(_cuts(edges)):
            part = rows.slice(edges[first], edges[last] - edges[first])
            partials += self._lifted(part, [start - edges[first] for start in edges[first:last]])
        return partials

    def _check_names(self) -> None:
        """Raise ConfigError if two columns of the answer have the same name."""
        by = {column.lower() for column in self.by}  # Spark's column names are case-insensitive
        named: dict[str, str] = {}
        for name, _ in self.functions:
            if name.lower() in by:
                raise ConfigError(f"{name!r} is a column of by and an aggregate: rename the aggregate")
            if (other := named.setdefault(name.lower(), name)) != name:
                raise ConfigError(f"{other!r} and {name!r} are one name to Spark, which ignores case: rename one")
        times = Counter(map(identity, self.by))
        for column in self.by:
            if times[identity(column)] > 1:
                raise ConfigError(f"by names the column {column!r} twice")

    def _lifted(self, rows: pa.Table, starts: Sequence[int]) -> Sequence[pa.Table]:
        layout = self._layout(rows.schema)
        ids, firsts = self._grouped(rows, starts)
        states = keyed.empty_states(len(firsts), layout.width, layout.plan)
        entered = EvaluatedRows(rows, ids)
        for part, at in layout.places.items():
            part.fill(states, at, entered)
        wide = (accumulator.lift(*_where(rows, ids, entered, where), len(firsts)) for accumulator, where in layout.wide)
        whole = layout.partial(distinct_keys(rows, self.by, firsts), states, wide)
        edges = [*np.searchsorted(firsts, starts).tolist(), len(firsts)]
        return [whole.slice(begin, end - begin) for begin, end in pairwise(edges)]

    def combine(self, partials: Sequence[pa.Table]) -> pa.Table:
        if len(partials) == 1:
            return partials[0]
        together = pa.concat_tables(partials).combine_chunks()
        layout = layout_of(self, together.schema)
        ids, firsts = self._grouped(together, [0])
        states = keyed.empty_states(len(firsts), layout.width, layout.plan)
        keyed.merge_states(states, frozen(ids), layout.states(together), layout.plan)
        wide = (
            accumulator.combine(layout.wide_states(together, number), ids, len(firsts))
            for number, (accumulator, _) in enumerate(layout.wide)
        )
        return layout.partial(distinct_keys(together, self.by, firsts), states, wide)

    def lower(self, partial: pa.Table) -> pa.Table:
        layout = layout_of(self, partial.schema)
        keys, states = partial.select(list(self.by)), layout.states(partial)
        return self.choice.of(layout.lowered(keys, states, lambda number: layout.wide_states(partial, number)))

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        # The fields of the keys are those of the rows, including their metadata.
        keys = [field_of(schema, name) for name in self.by]
        return pa.schema([*keys, *list(self._layout(schema).answers)[len(keys) :]])

    def queue(self, schema: pa.Schema, panes: int) -> SlidingStates | None:
        """Return a queue for partials of `schema` that windows share; None if the partials hold more than integers."""
        del panes  # evictions determine the length of a window
        layout = layout_of(self, schema)
        return None if layout.wide else SlidingStates(self.by, layout, self.choice)

    def divisible(self, schema: pa.Schema) -> bool:
        """Return whether there are keys, which can be hashed, and no `top`, which compares the answers of all keys."""
        return self.choice.top is None and have_parts(schema, self.by)

    def part_of(self, partial: pa.Table, part: int, parts: int) -> pa.Table:
        return rows_of_part(partial, self.by, part, parts)

    def calls_other_code(self, schema: pa.Schema) -> bool:
        """Return whether it is, or calls over rows of `schema`, code of others, which threads may not share."""
        wide = [accumulator for accumulator, _ in self._layout(schema).wide]
        called = any(isinstance(one, InOrderPart) and one.function is not None for one in wide)
        functions = [function for _, function in self.functions]
        return called or not all(map(is_of_package, (self, *functions, *wide)))

    def chosen_by(self, choice: AnswerFilter) -> Aggregate:
        """Return the same aggregate with another filter of its answers."""
        return self._with(choice=choice)

    def for_types(self, schema: pa.Schema) -> Aggregate:
        """Return the same aggregate with a column that Spark computes for each condition that rows of `schema` do not fit."""
        return self._with(functions=tuple((name, function.for_types(schema)) for name, function in self.functions))

    def _with(self, **parts: Any) -> Aggregate:
        other = object.__new__(type(self))
        other.__setstate__({**self.__getstate__(), **parts})
        return other

    def describe(self) -> dict[str, Any]:
        return {
            "query": "aggregate",
            "by": list(self.by),
            "functions": [[name, function.describe()] for name, function in self.functions],
            **({"required": list(self.needs)} if self.needs else {}),
            **self.choice.describe(),
        }

    def __str__(self) -> str:
        """Return a short description of the query."""
        return f"{', '.join(name for name, _ in self.functions)}{one_per(self.by)}"

    @cached_property
    def _columns(self) -> frozenset[str]:
        return frozenset((*self.by, *self.needs, *self._function_columns()))

    def _function_columns(self) -> Iterator[str]:
        for _, function in self.functions:
            yield from function.columns
            yield from function.conditions

    def _layout(self, schema: pa.Schema) -> StateLayout:
        return StateLayout.of(self, schema)

    def _grouped(self, rows: pa.Table, starts: Sequence[int]) -> tuple[IntArray, IntArray]:
        """Return each row's group, and the first row of each group; groups are numbered pane by pane, in order."""
        codes, size = dense_codes(rows, self.by)
        return keyed.number_groups(frozen(codes), size, frozen(np.asarray(starts, np.int64)))

    def __getstate__(self) -> dict[str, Any]:
        return {"by": self.by, "functions": self.functions, "choice": self.choice, "needs": self.needs}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)


def _functions(functions: Any, named: Mapping[str, Function]) -> dict[str, Function]:
    """Return all functions by the names of their columns; raise ConfigError for what is not a function, or twice a name."""
    if not isinstance(functions, Mapping) or not all(isinstance(name, str) and name for name in functions):
        raise ConfigError(
            f"functions= must be functions by name, such as {{'top': sp.max('price')}}, got {functions!r}"
        )
    if twice := functions.keys() & named.keys():
        raise ConfigError(f"{min(twice)!r} is a name in functions= and a keyword: rename one")
    if not (every := {**functions, **named}):
        raise ConfigError("need at least one aggregate function, such as n=sp.count() or total=sp.sum('amount')")
    for name, function in every.items():
        _check_function(name, function)
    return every


def _check_function(name: str, function: object) -> None:
    if is_spark_column(function):
        raise ConfigError(
            f"{name}= is an aggregate of Spark, {function}, which has no state for a pane that windows could share: use "
            f"a function of this package, such as sp.sum('amount'), or sp.accumulate() with an sp.Accumulator of your own"
        )
    if not isinstance(function, Function):
        raise ConfigError(f"{name}= must be an aggregate function such as sp.sum('amount'), got {function!r}")


def _cuts(edges: Sequence[int]) -> Sequence[int]:
    """Return the first pane of each set of panes that are lifted together, and, last, the number of panes."""
    cuts = [0]
    for pane in range(1, len(edges) - 1):
        if edges[pane + 1] - edges[cuts[-1]] > TOGETHER:
            cuts.append(pane)
    return [*cuts, len(edges) - 1]


def _where(rows: pa.Table, ids: IntArray, entered: EvaluatedRows, where: str | None) -> tuple[pa.Table, IntArray]:
    if where is None:
        return rows, ids
    kept = np.flatnonzero(entered.keep(where))
    return rows.take(pa.array(kept)), ids[kept]
