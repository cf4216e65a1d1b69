"""Scores: columns of any type, and arithmetic in float64, a tree at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from tests.differential.definition.values import is_nan, plain

_DO: dict[str, Callable[..., Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.true_divide,
    "abs": np.abs,
    "sqrt": np.sqrt,
    "log": np.log,
    "negative": np.negative,
}


def columns_of(tree: Any) -> tuple[str, ...]:
    """Return the columns of a tree, each once."""
    return tuple(dict.fromkeys(_names(tree)))


def _names(tree: Any) -> Iterator[str]:
    if isinstance(tree, str):
        yield tree
    if isinstance(tree, tuple):
        for part in tree[1:]:
            yield from _names(part)


def scores(rows: pa.Table, tree: Any) -> NDArray[np.float64]:
    """Return the score of each row, (n,), or its rank if the score is a column; NaN where it has none."""
    if isinstance(tree, str):
        values = plain(rows.column(tree))
        ranks: dict[Any, float] = {
            value: rank for rank, value in enumerate(sorted({one for one in values if not is_nan(one)}))
        }
        return np.array([np.nan if is_nan(value) else ranks[value] for value in values], np.float64)
    with np.errstate(all="ignore"):
        return np.asarray(np.broadcast_to(_value(rows, tree), rows.num_rows), np.float64)


def _value(rows: pa.Table, tree: Any) -> Any:
    if isinstance(tree, str):
        return np.array([float(value) for value in plain(rows.column(tree))], np.float64)
    if not isinstance(tree, tuple):
        return np.float64(tree)
    parts = [_value(rows, part) for part in tree[1:]]
    if tree[0] in ("min", "max"):
        return reduce(np.minimum if tree[0] == "min" else np.maximum, parts)
    return _DO[tree[0]](*parts)
