"""The continuous skyline (paper 4): the front of a sliding window kept current, and every change of it as it happens.

What is true, stated once:
  - A point that arrives at t is in the window during [t, t + w): closed at its begin, open at its end.
  - At every instant the front is the skyline of what is in the window. Equal points do not dominate each other: all stay.
  - Points that arrive at the same instant are there together; in which order they come makes no difference.
  - An update (time, action, row) says that a row enters the front (ADD) or leaves it (DEL). A stay of no length is none.
  - Updates come in order of time; in one instant DEL before ADD, then by row. A row enters at most once.

eager.py is the definition, a point at a time; front.py the batch form, over points, and passing.py what it need not look at;
groups.py has one for each group; shards.py and group_shards.py are the same in parts that are asked; fronts.py is all of these;
rows.py is the same over tables; query.py says which rows of a pane are worth keeping until their time has come.
"""

from skypane.operators.continuous.front import Arrivals, Front, Stored
from skypane.operators.continuous.groups import GroupedFronts
from skypane.operators.continuous.history import Stays, stays
from skypane.operators.continuous.query import ContinuousSkyline
from skypane.operators.continuous.rows import RowFront, update_schema
from skypane.operators.continuous.updates import ADD, DEL, Updates

__all__ = [
    "ADD",
    "DEL",
    "Arrivals",
    "ContinuousSkyline",
    "Front",
    "GroupedFronts",
    "RowFront",
    "Stays",
    "Stored",
    "Updates",
    "stays",
    "update_schema",
]
