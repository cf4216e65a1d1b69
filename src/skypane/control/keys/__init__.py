"""Which node has which key: a ring of hashes, and the most frequent keys cut into sub-keys (paper 3, section 4.1)."""

from skypane.control.keys.frequent import SpaceSaving, sub_keys
from skypane.control.keys.partitioning import FrequencyAware, KeyPlan, load_balance
from skypane.control.keys.ring import Ring, basic

__all__ = ["FrequencyAware", "KeyPlan", "Ring", "SpaceSaving", "basic", "load_balance", "sub_keys"]
