"""Looking up what was measured: the rows of some values, one figure of one row."""

from __future__ import annotations

import pandas as pd


def only(rows: pd.DataFrame, **where: object) -> pd.DataFrame:
    """Return the rows in which these columns have these values."""
    for column, value in where.items():
        rows = rows[rows[column] == value]
    return rows


def at(rows: pd.DataFrame, figure: str, **where: object) -> float:
    """Return a figure of the one row in which these columns have these values; NaN if it was not run."""
    found = only(rows, **where)[figure]
    return float(found.iloc[0]) if len(found) == 1 else float("nan")
