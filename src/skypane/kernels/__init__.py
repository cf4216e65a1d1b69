"""Exact kernels over `(n, d)` float64 points, smaller is better: skyline, grouped skyline, k-dominance.

All kernels accept points of any memory layout, without a copy if it is Fortran order, and never write to their inputs.
Equal rows are all kept.

>>> import numpy as np
>>> from skypane.kernels import skyline_indices
>>> skyline_indices(np.array([[1.0, 3.0], [2.0, 2.0], [2.0, 3.0]]))
array([0, 1])
"""

from typing import TYPE_CHECKING

from skypane import lazy

if TYPE_CHECKING:
    from skypane.kernels.public import *  # noqa: F403 - public names and nothing else
else:
    __getattr__, __dir__ = lazy.package(__name__)
