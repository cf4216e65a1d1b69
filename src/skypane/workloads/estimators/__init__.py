"""Estimators of the properties of synthetic or recorded streams, over plain arrays."""

from skypane.workloads.estimators.counts import counts, peak_to_mean
from skypane.workloads.estimators.delays_seen import delay_quantiles, late_share
from skypane.workloads.estimators.dispersion import Dispersion, dispersion, dispersion_of_counts
from skypane.workloads.estimators.hurst import hurst_by_range, hurst_by_variance
from skypane.workloads.estimators.point_shape import mean_correlation, skyline_share
from skypane.workloads.estimators.power_laws import tail_exponent, zipf_exponent
from skypane.workloads.estimators.variation import autocorrelation, gaps, squared_variation

__all__ = [
    "Dispersion",
    "autocorrelation",
    "counts",
    "delay_quantiles",
    "dispersion",
    "dispersion_of_counts",
    "gaps",
    "hurst_by_range",
    "hurst_by_variance",
    "late_share",
    "mean_correlation",
    "peak_to_mean",
    "skyline_share",
    "squared_variation",
    "tail_exponent",
    "zipf_exponent",
]
