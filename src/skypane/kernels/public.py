"""The kernels that other rooms and users call: `skypane.kernels` has them from here."""

from skypane.kernels.groups import skyline_indices_by_group
from skypane.kernels.kdominance import dominance_factors, k_dominant_indices, top_delta_indices
from skypane.kernels.skyline import skyline_indices
from skypane.kernels.warming import warm

__all__ = [
    "dominance_factors",
    "k_dominant_indices",
    "skyline_indices",
    "skyline_indices_by_group",
    "top_delta_indices",
    "warm",
]
