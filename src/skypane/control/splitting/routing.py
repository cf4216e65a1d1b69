"""Routing of the rows of a batch: pane -> owners."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from skypane.types import ConfigError


class Share(NamedTuple):
    """One partition of a pane: `rows` of its rows go to `worker`."""

    worker: int
    rows: int


@dataclass(frozen=True, slots=True)
class Routing:
    """The owners of every pane.

    workers      number of workers, which are numbered from 0
    shares       panes whose rows are split in these proportions, or that have an owner other than pane mod workers
    everywhere   rows of all other panes go to all workers in turn (TB_RR); else the owner of a pane is pane mod workers
    turn         the worker of the first row, if rows go in turn

    The first share of a pane gets its first rows, and so on, cyclically. A runtime that does not know the number of a
    row within its pane keeps only the proportions.
    """

    workers: int
    shares: Mapping[int, tuple[Share, ...]] = field(default_factory=dict)
    everywhere: bool = False
    turn: int = 0

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise ConfigError(f"need at least one worker to route to, got {self.workers}")
        for pane, shares in self.shares.items():
            if not shares or any(not 0 <= share.worker < self.workers or share.rows < 1 for share in shares):
                raise ConfigError(
                    f"pane {pane} needs shares of at least 1 row on workers below {self.workers}: {shares}"
                )

    def owners(self, pane: int) -> tuple[int, ...]:
        """Return the workers that get rows of the pane, each once, in the order of their first row."""
        if pane in self.shares:
            return tuple(dict.fromkeys(share.worker for share in self.shares[pane]))
        if self.everywhere:
            return tuple((self.turn + worker) % self.workers for worker in range(self.workers))
        return (pane % self.workers,)

    def owner(self, pane: int, row: int = 0) -> int:
        """Return the worker of row number `row` of the pane, or of the batch if rows go in turn."""
        if pane in self.shares:
            shares = self.shares[pane]
            row %= sum(share.rows for share in shares)
            for share in shares:
                if row < share.rows:
                    return share.worker
                row -= share.rows
        return (self.turn + row) % self.workers if self.everywhere else pane % self.workers

    def partitions(self, pane: int, rows: int) -> int:
        """Return the number of workers that get any of a pane's `rows` rows."""
        if pane in self.shares:
            divided = zip(self.shares[pane], self._divided(pane, rows), strict=True)
            return len({share.worker for share, part in divided if part})
        return min(rows, self.workers if self.everywhere else 1)

    def rows_by_worker(self, rows: Mapping[int, int]) -> tuple[int, ...]:
        """Return how many of these rows, given by pane, each worker gets: as many as owner() sends it one by one.

        A runtime that knows only the proportions of a pane's shares meets them to within one slot.
        """
        loads = [0] * self.workers
        in_turn = 0
        for pane, count in rows.items():
            if pane in self.shares:
                for share, part in zip(self.shares[pane], self._divided(pane, count), strict=True):
                    loads[share.worker] += part
            elif self.everywhere:
                in_turn += count
            else:
                loads[pane % self.workers] += count
        each, rest = divmod(in_turn, self.workers)
        return tuple(load + each + ((at - self.turn) % self.workers < rest) for at, load in enumerate(loads))

    def _divided(self, pane: int, rows: int) -> list[int]:
        """Return the rows of each share of a pane, which get them cyclically."""
        shares = self.shares[pane]
        cycles, rest = divmod(rows, sum(share.rows for share in shares))
        parts = []
        for share in shares:
            parts.append(cycles * share.rows + min(rest, share.rows))
            rest -= min(rest, share.rows)
        return parts

    def slots(self, pane: int, count: int) -> list[int]:
        """Return the workers of `count` equally likely slots for the pane's rows, in proportion to its shares.

        A runtime that routes a row by its hash, rather than its number, uses the slot of the hash.
        """
        if pane not in self.shares:
            return [self.owner(pane)] * count
        shares = self.shares[pane]
        total = sum(share.rows for share in shares)
        whole = [count * share.rows // total for share in shares]
        remainders = sorted(range(len(shares)), key=lambda at: (-(count * shares[at].rows % total), at))
        for at in remainders[: count - sum(whole)]:
            whole[at] += 1
        return [share.worker for share, slots in zip(shares, whole, strict=True) for _ in range(slots)]
