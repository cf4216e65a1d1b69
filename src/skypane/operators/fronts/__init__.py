"""The continuous skyline (paper 4): the front of a sliding window, kept up to date, and each of its changes.

Invariants:
  - A point that arrives at t is in the window during [t, t + w), including t and excluding t + w.
  - At every instant the front is the skyline of the points in the window. Equal points do not dominate each other.
  - Points that arrive at the same instant are in the window together; their order makes no difference.
  - In an update (time, action, row), a row enters the front (ADD) or leaves it (DEL). A stay of length zero has none.
  - Updates are ordered by time; in one instant DEL comes before ADD, then by row. A row enters at most once.

front.py computes the front of points, one batch at a time, without the arrivals that prefilter.py drops
(tests/operators/fronts/eager.py is the definition, one point at a time). grouped_fronts.py has a front for each group;
shards.py and group_shards.py divide the work into shards; fronts.py switches between these forms. row_front.py works on
tables; continuous_skyline.py selects the rows of a pane that must be kept until their time has come.
"""

from skypane.operators.fronts.continuous_skyline import ContinuousSkyline
from skypane.operators.fronts.front import Front, FrontContents, NewPoints
from skypane.operators.fronts.grouped_fronts import GroupedFronts
from skypane.operators.fronts.row_front import RowFront, update_schema
from skypane.operators.fronts.stays import Stays, stays
from skypane.operators.fronts.updates import ADD, DEL, Updates

__all__ = [
    "ADD",
    "DEL",
    "ContinuousSkyline",
    "Front",
    "FrontContents",
    "GroupedFronts",
    "NewPoints",
    "RowFront",
    "Stays",
    "Updates",
    "stays",
    "update_schema",
]
