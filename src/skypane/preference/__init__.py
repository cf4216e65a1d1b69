"""Preferences over rows, which turn columns into smaller-is-better points; and scores for top-k queries."""

from skypane.preference.column import ColumnLike, Columns, column_name
from skypane.preference.preference import Preference, around, diff, from_sense, high, low, parse
from skypane.preference.score import Score

__all__ = [
    "ColumnLike",
    "Columns",
    "Preference",
    "Score",
    "around",
    "column_name",
    "diff",
    "from_sense",
    "high",
    "low",
    "parse",
]
