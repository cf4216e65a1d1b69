"""Exact kernels over `(n, d)` float64 points, smaller is better: skyline, grouped skyline, k-dominance.

All take points of any layout and are zero-copy on Fortran order; none writes to its inputs. Equal rows are all kept.

>>> import numpy as np
>>> skyline_rows(np.array([[1.0, 3.0], [2.0, 2.0], [2.0, 3.0]]))
array([0, 1])
"""

from skypane.kernels.groups import skyline_rows_by_group
from skypane.kernels.kdominance import dominance_factors, k_dominant_rows, top_delta_rows
from skypane.kernels.skyline import skyline_rows
from skypane.kernels.warm import Warmth, warm

__all__ = [
    "Warmth",
    "dominance_factors",
    "k_dominant_rows",
    "skyline_rows",
    "skyline_rows_by_group",
    "top_delta_rows",
    "warm",
]
