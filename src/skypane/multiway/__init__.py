"""Many inputs read by one operator: their tuples merged into one order, deterministically (paper 2)."""

from skypane.multiway.ready_merge import MergeState, Ready, ReadyMerge
from skypane.multiway.tgate import ReadyTuples, TGate
from skypane.multiway.whive import WHive, Winset

__all__ = ["MergeState", "Ready", "ReadyMerge", "ReadyTuples", "TGate", "WHive", "Winset"]
