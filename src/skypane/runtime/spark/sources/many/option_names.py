"""The name of the source of many inputs, and defaults of its options; importable with every supported PySpark."""

from __future__ import annotations

from typing import Final

FORMAT: Final = "skypane-many"
READERS: Final = 2
"""The largest number of tasks in a micro-batch."""
