"""Punctuation laws: they say when a pane is complete enough to be closed."""

from skypane.progress.aqkslack import AqKSlack
from skypane.progress.arrivals import Arrivals, SourceCount
from skypane.progress.future import FutureBound
from skypane.progress.kslack import KSlack
from skypane.progress.policy import ProgressPolicy, ProgressState
from skypane.progress.readiness import Readiness
from skypane.progress.watermark import Watermark

__all__ = [
    "AqKSlack",
    "Arrivals",
    "FutureBound",
    "KSlack",
    "ProgressPolicy",
    "ProgressState",
    "Readiness",
    "SourceCount",
    "Watermark",
]
