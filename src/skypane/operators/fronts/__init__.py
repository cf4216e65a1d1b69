"""The continuous skyline (paper 4): the front of a sliding window kept current, and every change of it as it happens.

What is true, stated once:
  - A point that arrives at t is in the window during [t, t + w): closed at its begin, open at its end.
  - At every instant the front is the skyline of what is in the window. Equal points do not dominate each other: all stay.
  - Points that arrive at the same instant are there together; in which order they come makes no difference.
  - An update (time, action, row) says that a row enters the front (ADD) or leaves it (DEL). A stay of no length is none.
  - Updates come in order of time; in one instant DEL before ADD, then by row. A row enters at most once.

front.py is over points, a batch at a time, and prefilter.py what it need not look at (tests/operators/fronts/eager.py is the
definition, a point at a time);
grouped_fronts.py has one for each group; shards.py and group_shards.py are the same in parts that are asked; fronts.py is all of these;
row_front.py is the same over tables; continuous_skyline.py says which rows of a pane are worth keeping until their time has come.
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
