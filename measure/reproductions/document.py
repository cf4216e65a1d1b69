"""The page's parts, each with the line that says when and where it was measured.

The line that most parts share stands at the head of the page; a part with another one has it below its title.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from measure.tables import replace_between

MARK, HEAD = "figures", "measured"
_OWN = re.compile(r"\n\n\*(Measured [^\n]*)\*(?=\n\n)")


class Part(NamedTuple):
    """A figure's text, and its line of when and where; "Measured before." if that was not kept."""

    text: str
    stamp: str


UNKNOWN = "Measured before; the day was not kept."


def parts(document: Path) -> dict[str, Part]:
    """Return the page's parts by the figure that they speak of."""
    head = _between(document, HEAD).strip() or UNKNOWN
    found = re.split(r"^## ", _between(document, MARK), flags=re.MULTILINE)[1:]
    return {part.partition(":")[0]: _part(f"## {part.strip()}", head) for part in found}


def _part(text: str, head: str) -> Part:
    own = _OWN.search(text)
    return Part(text, head) if own is None else Part(_OWN.sub("", text, count=1), own[1])


def write(document: Path, known: Mapping[str, Part], order: Iterable[str]) -> None:
    """Write the page's head and its parts in this order."""
    shared = Counter(part.stamp for part in known.values() if part.stamp != UNKNOWN).most_common(1)
    head = shared[0][0] if shared else ""
    replace_between(document, HEAD, head)
    replace_between(document, MARK, "\n\n".join(_told(known[name], head) for name in order if name in known))


def _told(part: Part, head: str) -> str:
    if part.stamp == head:
        return part.text
    title, _, rest = part.text.partition("\n\n")
    return f"{title}\n\n*{part.stamp}*\n\n{rest}"


def _between(document: Path, mark: str) -> str:
    return document.read_text(encoding="utf-8").partition(f"<!-- {mark} -->")[2].partition(f"<!-- /{mark} -->")[0]
