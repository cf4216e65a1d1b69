"""The public names of skypane.multiway."""

from skypane.multiway.feeds import Feeds
from skypane.multiway.ready_merge import MergeState, Ready, ReadyMerge

__all__ = ["Feeds", "MergeState", "Ready", "ReadyMerge"]
