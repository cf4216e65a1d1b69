"""Style of stand-alone plots: plain axes, and a grid behind the lines."""

from __future__ import annotations

from typing import Any

PLAIN: Any = {
    "svg.hashsalt": "skypane",  # equal figures give equal bytes
    "text.parse_math": False,  # labels may contain "$"
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "font.size": 9,
}
