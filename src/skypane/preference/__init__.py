"""Preferences over rows: what is better, settled once as smaller-is-better points; and scores for top-k."""

from skypane.preference.preference import Preference, around, diff, from_sense, high, low, parse
from skypane.preference.score import Score

__all__ = ["Preference", "Score", "around", "diff", "from_sense", "high", "low", "parse"]
