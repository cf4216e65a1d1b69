"""Look up measured rows and values."""

from __future__ import annotations

import pandas as pd


def only(rows: pd.DataFrame, **where: object) -> pd.DataFrame:
    """Return the rows in which these columns have these values."""
    for column, value in where.items():
        rows = rows[rows[column] == value]
    return rows


def at(rows: pd.DataFrame, figure: str, **where: object) -> float:
    """Return a column's value in the one row in which these columns have these values; NaN if there is no such row."""
    found = only(rows, **where)[figure]
    return float(found.iloc[0]) if len(found) == 1 else float("nan")
