"""Display of values in notebook cells: a small table of names and values."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from skypane.naming import shortened

#: Characters of a value that a cell shows; longer values are cut.
_SHOWN = 160


def table(title: str, pairs: Iterable[tuple[str, object]]) -> str:
    """Return (name, value) pairs as an HTML table with a title; texts are escaped and long values cut."""
    rows = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(shortened(str(value), _SHOWN))}</td></tr>'
        for name, value in pairs
    )
    return f"<table><caption>{escape(title)}</caption><tbody>{rows}</tbody></table>"
