"""The state of an aggregate whose functions were others: read by the old functions, and kept in the new layout."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from skypane.kernels import keyed
from skypane.operators.aggregates.aggregate import Aggregate
from skypane.operators.aggregates.functions import (
    AccumulatedValue,
    CountFunction,
    Function,
    MeanFunction,
    SumFunction,
    ValueByOrder,
    VarianceFunction,
    recorded_name,
)
from skypane.operators.aggregates.sketches import ApproxDistinct, ApproxQuantile
from skypane.operators.aggregates.spark_having import of_workers
from skypane.operators.aggregates.state_layout import StateLayout, layout_of
from skypane.operators.aggregates.state_parts import CountPart
from skypane.operators.aggregates.value_functions import DistinctValues, ModeFunction, PercentileFunction
from skypane.operators.aggregates.wide_states import DistinctPart, InOrderPart
from skypane.types import ConfigError

_FUNCTIONS: Mapping[str, type[Function]] = {
    recorded_name(kind): kind
    for kind in (
        CountFunction,
        SumFunction,
        MeanFunction,
        VarianceFunction,
        ValueByOrder,
        DistinctValues,
        ModeFunction,
        PercentileFunction,
    )
}
_ACCUMULATORS: Mapping[str, type[Any]] = {
    recorded_name(kind): kind for kind in (DistinctPart, InOrderPart, ApproxDistinct, ApproxQuantile)
}


def aggregate_of(recorded: Mapping[str, Any], known: Aggregate) -> Aggregate:
    """Return the aggregate that describe() recorded, without a condition that Spark evaluates.

    Functions of your own are found among those of `known`.

    Raises ConfigError, naming the function, if a function cannot be found.
    """
    own = {_text(function.describe()): function for _, function in known.functions}
    functions: dict[str, Any] = {
        name: own.get(_text(value)) or _built_in(name, value) for name, value in recorded["functions"]
    }
    recorded = of_workers(recorded)
    return Aggregate(
        recorded["by"],
        required=recorded.get("required", ()),
        having=recorded.get("having"),
        top=recorded.get("top"),
        rank_by=recorded.get("rank_by"),
        **functions,
    )


def _built_in(name: str, recorded: Mapping[str, Any]) -> Function:
    settings = {key: value for key, value in recorded.items() if key != "function"}
    try:
        if (kind := _FUNCTIONS.get(recorded["function"])) is not None:
            function = kind(**_fields(settings))
        else:
            accumulator = _ACCUMULATORS[recorded["function"]](**_fields(settings["of"]))
            function = AccumulatedValue(settings.get("where"), accumulator)
        if _text(function.describe()) == _text(recorded):
            return function
    except (KeyError, TypeError, ConfigError):
        pass
    raise ConfigError(
        f"the state of {name!r}, {recorded['function']}, can be read only by its own code: keep this function"
    )


def _fields(recorded: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in recorded.items()}


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def converted(partial: pa.Table, before: Aggregate, layout: StateLayout) -> pa.Table:
    """Return a partial of the aggregate `before` in a layout; states that it lacks are those of no rows."""
    held, rows = layout_of(before, partial.schema), partial.num_rows
    states, matrix = keyed.empty_states(rows, layout.width, layout.plan), held.states(partial)
    for part, at in layout.places.items():
        if part in held.places:
            begin = held.places[part]
            states[:, at : at + part.width] = matrix[:, begin : begin + part.width]
    none = layout.rows.empty_table()
    wide = [
        held.wide_states(partial, held.wide.index(state))
        if state in held.wide
        else state[0].lift(none, np.zeros(0, np.int64), rows)
        for state in layout.wide
    ]
    return layout.partial(partial.select(list(layout.by)), states, wide)


def unknown_functions(
    new: Aggregate, before: Aggregate, schema: pa.Schema, unknown_before: Collection[str] = ()
) -> tuple[str, ...]:
    """Return the functions of `new` that the states of `before`, without those of `unknown_before`, do not answer."""
    kept: set[Any] = {CountPart()}  # every state counts its rows
    kept |= {
        part
        for name, function in before.functions
        if name not in unknown_before and all(column in schema.names for column in _columns(function))
        for part in _parts(function, schema)
    }
    return tuple(name for name, function in new.functions if not kept.issuperset(_parts(function, schema)))


def _columns(function: Function) -> tuple[str, ...]:
    return (*function.columns, *function.conditions)


def _parts(function: Function, schema: pa.Schema) -> set[Any]:
    wide = {(accumulator, function.where) for accumulator in function.accumulators(schema)}
    return {*function.parts(schema), *wide}
