"""Progress policies: they decide when a pane is complete enough to be closed."""

from skypane.progress.aqkslack import AqKSlack
from skypane.progress.far_future import FutureBound
from skypane.progress.kslack import KSlack
from skypane.progress.pane_arrivals import PaneArrivals, SourceCount
from skypane.progress.progress_policy import ProgressPolicy, ProgressState
from skypane.progress.readiness import Readiness
from skypane.progress.watermark import Watermark

__all__ = [
    "AqKSlack",
    "FutureBound",
    "KSlack",
    "PaneArrivals",
    "ProgressPolicy",
    "ProgressState",
    "Readiness",
    "SourceCount",
    "Watermark",
]
