"""Many inputs read by one operator: their tuples merged into one order, deterministically, and aggregated (paper 2)."""

from skypane.multiway.aggregation import Aggregation, Winset
from skypane.multiway.by_columns import ColumnarTuMLSC, ColumnarWiML
from skypane.multiway.by_hive import TuMLMC, WiML
from skypane.multiway.design import Multiway
from skypane.multiway.in_order import MQ, MQLF, TuMLSC
from skypane.multiway.ready_merge import MergeState, Ready, ReadyMerge
from skypane.multiway.tgate import ReadyTuples, SkipList, TGate
from skypane.multiway.whive import WHive

__all__ = [
    "MQ",
    "MQLF",
    "Aggregation",
    "ColumnarTuMLSC",
    "ColumnarWiML",
    "MergeState",
    "Multiway",
    "Ready",
    "ReadyMerge",
    "ReadyTuples",
    "SkipList",
    "TGate",
    "TuMLMC",
    "TuMLSC",
    "WHive",
    "WiML",
    "Winset",
]
