"""Partitioning of keys over nodes: consistent hashing, with frequent keys split (paper 3, section 4.1)."""

from skypane.control.keys.frequent import SpaceSaving, sub_keys
from skypane.control.keys.partitioning import FrequencyAware, KeyPlan, load_balance
from skypane.control.keys.ring import HashRing, basic

__all__ = ["FrequencyAware", "HashRing", "KeyPlan", "SpaceSaving", "basic", "load_balance", "sub_keys"]
