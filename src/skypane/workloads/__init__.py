"""Synthetic streams with bursts, disorder, skew and many sources, and estimators of these properties.

A workload is a frozen config that yields the same Arrow record batches each time it is iterated:

>>> from skypane.workloads import Map2, UniformDelay, Workload
>>> bursty = Workload(Map2(rate=1_000, dispersion=500), delays=UniformDelay("200 ms"), rows=3)
>>> bursty.table().num_rows
3

workload("map2", rate=1_000, dispersion=500, ...) builds one by name from plain parameters.
"""

from skypane.workloads.arrivals.fleets import BurstyFleet, ConstantFleet, FluctuatingFleet
from skypane.workloads.arrivals.map2 import Map2
from skypane.workloads.arrivals.plain import Constant, Poisson
from skypane.workloads.arrivals.profiles import OnOff, RandomWalk, Steps
from skypane.workloads.arrivals.selfsimilar import ParetoSlots, SelfSimilar
from skypane.workloads.cabs import Cabs
from skypane.workloads.content.drift import Drifting
from skypane.workloads.content.keys import Zipf
from skypane.workloads.content.points import Classic
from skypane.workloads.content.senders import Presence, Shared
from skypane.workloads.disorder.delays import (
    EmpiricalDelay,
    ExponentialDelay,
    LognormalDelay,
    NoDelay,
    ParetoDelay,
    UniformDelay,
)
from skypane.workloads.disorder.held import HeldBack
from skypane.workloads.meters import Meters
from skypane.workloads.registry import ARRIVALS, DELAYS, POINTS, SCENES, workload
from skypane.workloads.stream import Stream
from skypane.workloads.workload import Workload

__all__ = [
    "ARRIVALS",
    "DELAYS",
    "POINTS",
    "SCENES",
    "BurstyFleet",
    "Cabs",
    "Classic",
    "Constant",
    "ConstantFleet",
    "Drifting",
    "EmpiricalDelay",
    "ExponentialDelay",
    "FluctuatingFleet",
    "HeldBack",
    "LognormalDelay",
    "Map2",
    "Meters",
    "NoDelay",
    "OnOff",
    "ParetoDelay",
    "ParetoSlots",
    "Poisson",
    "Presence",
    "RandomWalk",
    "SelfSimilar",
    "Shared",
    "Steps",
    "Stream",
    "UniformDelay",
    "Workload",
    "Zipf",
    "workload",
]
