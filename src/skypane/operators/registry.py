"""The queries that answer windows, a line each: job files and docs/reference.md have them from here.

A query is called in job files as its class is, in small letters, words apart: `top_k` is TopK.
"""

from skypane.operators.aggregates.aggregate import Aggregate as Aggregate
from skypane.operators.dominance import KDominant as KDominant
from skypane.operators.dominance import TopDelta as TopDelta
from skypane.operators.skyline import Skyline as Skyline
from skypane.operators.topk import TopK as TopK

_GROUP = "skypane.queries"
