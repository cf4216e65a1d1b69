"""Fair shares of a budget of rows among inputs, so that no input waits longer because another one is hot.

Max-min fairness: inputs that request less than an even share get what they request, and the others share the rest in
the same way.
"""

from __future__ import annotations

from collections.abc import Mapping


def fair_shares(wanted: Mapping[str, int], budget: int, turn: int = 0) -> dict[str, int]:
    """Return the number of rows of each input, at most its request, and at most `budget` in all.

    The remainder of the division is assigned round robin, starting at `turn`, which callers increase with each call:
    even if the budget is below the number of inputs, each input gets a row within as many calls as there are inputs.
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
