"""The queries that answer windows, one a line; job files and docs/reference.md use this list.

The name of a query in job files is its class name in snake case: `top_k` is TopK.
"""

from skypane.operators.aggregates.aggregate import Aggregate as Aggregate
from skypane.operators.dominance import KDominant as KDominant
from skypane.operators.dominance import TopDelta as TopDelta
from skypane.operators.skyline import Skyline as Skyline
from skypane.operators.topk import TopK as TopK

_GROUP = "skypane.queries"
