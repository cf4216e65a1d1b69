"""Texts of several seeds in one: a number that varies is shown as least..most."""

from __future__ import annotations

import re
from collections.abc import Sequence

_NUMBER = re.compile(r"(?<![\w.])-?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:e[+-]?\d+)?")


def spread(texts: Sequence[str]) -> str:
    """Return texts that differ in numbers alone as one, such as "rho 1.2..1.4"; others with "or" between, each once.

    Texts with equally many parts between semicolons are joined part by part.
    """
    texts = list(dict.fromkeys(texts))
    if len(texts) == 1:
        return texts[0]
    parts = [text.split("; ") for text in texts]
    if len(parts[0]) > 1 and all(len(part) == len(parts[0]) for part in parts):
        return "; ".join(spread(same) for same in zip(*parts, strict=True))
    words = _NUMBER.split(texts[0])
    if any(_NUMBER.split(text) != words for text in texts):
        return " or ".join(texts)
    columns = zip(*(_NUMBER.findall(text) for text in texts), strict=True)
    numbers = [_range(column) for column in columns]
    return "".join(part for pair in zip(words, [*numbers, ""], strict=True) for part in pair)


def _range(numbers: Sequence[str]) -> str:
    ordered = sorted(set(numbers), key=lambda number: float(number.replace(",", "")))
    return ordered[0] if len(ordered) == 1 else f"{ordered[0]}..{ordered[-1]}"
