"""The name of the source of many inputs, and defaults of its options; read without the parts that need a newer PySpark."""

from __future__ import annotations

from typing import Final

FORMAT: Final = "skypane-many"
READERS: Final = 2
"""Tasks of a micro-batch, at most."""
INPUT: Final = "input"
"""The column that names the input of a row."""
