"""Estimators of the properties of synthetic or recorded streams: one statistic per module, over plain arrays."""

from skypane.workloads.estimators.correlation import mean_correlation
from skypane.workloads.estimators.counts import counts
from skypane.workloads.estimators.delay import delay_quantiles
from skypane.workloads.estimators.dispersion import Dispersion, dispersion, dispersion_of_counts
from skypane.workloads.estimators.hurst import hurst_by_range, hurst_by_variance
from skypane.workloads.estimators.late import late_share
from skypane.workloads.estimators.peak import peak_to_mean
from skypane.workloads.estimators.skew import zipf_exponent
from skypane.workloads.estimators.skyline_share import skyline_share
from skypane.workloads.estimators.tail import tail_exponent
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
