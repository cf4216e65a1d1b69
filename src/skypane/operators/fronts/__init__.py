"""The continuous skyline (paper 4): the front of a sliding window, kept up to date, and each of its changes.

Invariants:
  - A point that arrives at t is in the window during [t, t + w), including t and excluding t + w.
  - At every instant the front is the skyline of the points in the window. Equal points do not dominate each other.
  - Points that arrive at the same instant are in the window together; their order makes no difference.
  - In an update (time, action, row), a row enters the front (ADD) or leaves it (DEL). A stay of length zero has none.
  - Updates are ordered by time; in one instant DEL comes before ADD, then by row. A row enters at most once.

A front is a FrontOperator (front_operator.py): step(arrivals, until) returns updates. All forms return the same ones:

    Front             front.py             one front: its points are in an index
    SmallFronts       small_fronts.py      fronts by group: one kernel call compares the points of all groups
    GroupedFronts     grouped_fronts.py    fronts by group: a Front for each large group, SmallFronts for the others
    ShardedFront      sharded_fronts.py    one front, its points in shards without state, as tasks (shards.py)
    ShardedGroups     sharded_fronts.py    fronts by group, whole groups in such shards
    ResidentFront     resident_fronts.py   one front, its points in shards that stay in the process and run in threads
    ResidentGroups    resident_fronts.py   fronts by group, whole groups in such shards
    RescalableFront   rescalable_front.py  any of them except SmallFronts: the caller sets form and shards

tests/operators/fronts/eager.py is the definition, one point at a time. prefilter.py drops arrivals that are never on
the front. row_front.py works on tables; continuous_skyline.py selects the rows of a pane that must be kept until their
time has come.
"""

from skypane.operators.fronts.continuous_skyline import ContinuousSkyline, Stays, stays
from skypane.operators.fronts.front import Front
from skypane.operators.fronts.front_operator import ADD, DEL, FrontContents, FrontOperator, NewPoints, Updates
from skypane.operators.fronts.grouped_fronts import GroupedFronts
from skypane.operators.fronts.row_front import RowFront, update_schema

__all__ = [
    "ADD",
    "DEL",
    "ContinuousSkyline",
    "Front",
    "FrontContents",
    "FrontOperator",
    "GroupedFronts",
    "NewPoints",
    "RowFront",
    "Stays",
    "Updates",
    "stays",
    "update_schema",
]
