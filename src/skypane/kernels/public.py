"""The kernels that users and other packages call; `skypane.kernels` exports them."""

from skypane.kernels.batch_skyline import skyline_indices
from skypane.kernels.grouped_skyline import skyline_indices_by_group
from skypane.kernels.kdominance import dominance_factors, k_dominant_indices, top_delta_indices
from skypane.kernels.warming import warm

__all__ = [
    "dominance_factors",
    "k_dominant_indices",
    "skyline_indices",
    "skyline_indices_by_group",
    "top_delta_indices",
    "warm",
]
