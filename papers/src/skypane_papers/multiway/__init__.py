"""Multiway aggregation: one operator merges many inputs deterministically and aggregates them (paper 2)."""

from skypane.multiway.ready_merge import MergeState, Ready, ReadyMerge
from skypane_papers.multiway.aggregation import Aggregation, Winset
from skypane_papers.multiway.by_columns import ColumnarTuMLSC, ColumnarWiML
from skypane_papers.multiway.by_hive import TuMLMC, WiML
from skypane_papers.multiway.design import Multiway
from skypane_papers.multiway.in_order import MQ, MQLF, TuMLSC
from skypane_papers.multiway.tgate import ReadyTuples, SkipList, TGate
from skypane_papers.multiway.whive import WHive

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
