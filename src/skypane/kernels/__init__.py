"""Exact kernels over `(n, d)` float64 points, smaller is better: skyline, grouped skyline, k-dominance.

All take points of any layout and are zero-copy on Fortran order; none writes to its inputs. Equal rows are all kept.

>>> import numpy as np
>>> skyline_indices(np.array([[1.0, 3.0], [2.0, 2.0], [2.0, 3.0]]))
array([0, 1])
"""

from skypane.kernels.groups import skyline_indices_by_group
from skypane.kernels.kdominance import dominance_factors, k_dominant_indices, top_delta_indices
from skypane.kernels.skyline import skyline_indices
from skypane.kernels.warm import warm

__all__ = [
    "dominance_factors",
    "k_dominant_indices",
    "skyline_indices",
    "skyline_indices_by_group",
    "top_delta_indices",
    "warm",
]
