"""A budget of rows, shared fairly among inputs: none waits for longer because another one is hot.

Max-min fairness: the inputs that want less than an even share get what they want, and what they leave is shared by the
others in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping


def fair_shares(wanted: Mapping[str, int], budget: int, turn: int = 0) -> dict[str, int]:
    """Return how many rows each input may bring, at most what it wants, and `budget` in all.

    What does not divide goes by a turn that moves on with each call: of a budget below the number of inputs each gets a
    row within as many turns as there are inputs.
    """
    order = sorted(wanted, key=lambda name: (wanted[name], name))
    shares, left = {}, max(budget, 0)
    while order and wanted[order[0]] <= left // len(order):
        shares[order[0]] = wanted[order[0]]
        left -= wanted[order.pop(0)]
    short = sorted(order)
    even, more = divmod(left, len(short)) if short else (0, 0)
    shares |= dict.fromkeys(short, even)
    for at in range(more):
        shares[short[(turn + at) % len(short)]] += 1
    return shares
