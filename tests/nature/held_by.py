"""Where each kind of kill is tried: by which stream of this package on a real Spark, and by which of tests/chaos without Java.

What concerns the engine's own files and its ledger alone is tried in tests/chaos, at each operation on files, where a kill costs
milliseconds. Here is what only Spark can show: its logs of offsets and commits beside the ledger, its own stateful operators,
batches that come again, Python workers, executors and Java that die. tests/model has each order of the operations of drivers.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Held(NamedTuple):
    """The streams in which something is tried, by their names in scenarios.py here, and in tests/chaos."""

    nature: tuple[str, ...] = ()
    chaos: tuple[str, ...] = ()


EVERY: Final = ("folder", "aggregates", "continuous", "function", "state", "amended", "share", "early", "stays", "held")

HELD_BY: Final = {
    "windows: kills at random moments": Held(("folder", "aggregates"), ("skyline", "sums")),
    "windows: kills at exact places": Held(("folder", "aggregates"), ("skyline", "sums")),
    "several queries over one stream": Held((), ("shared",)),
    "a file of several batches": Held((), ("rolling",)),
    "a query that changes at a start": Held((), ("changed",)),
    "a continuous skyline and its front, at random moments and exact places": Held(("continuous",), ("continuous",)),
    "a front in threads, and in shards in tasks": Held(("continuous",), ("continuous",)),
    "early answers, as versions": Held((), ("early",)),
    "early answers, as changes": Held(("early",), ("early as changes",)),
    "amended answers": Held(("amended",), ("amended",)),
    "answers amended by a share of the windows, and its account": Held(("share",), ("amended by a share",)),
    "stays, which the next driver may cut otherwise": Held(("stays",), ("stays",)),
    "rows that are held, quarantined, or followed after a pause": Held(("held",), ("held",)),
    "drains: a kill in one, and it is repeated before anything else": Held(EVERY, ("drains",)),
    "rows that come a second time, repaired": Held((), ("readmitted",)),
    "one of Spark's stateful operators before the query": Held(("state",)),
    "between the ledger's commit and Spark's": Held(EVERY),
    "a function as output receives the same batch again": Held(("function", "kafka")),
    "a driver that takes over while another stands still, and wakes": Held(EVERY, ("skyline",)),
    "a driver that is suspended with all of its processes": Held((*EVERY, "elastic")),
    "a worker that dies while it computes a pane": Held(("deadly",)),
    "Java that dies, or lives on without its Python": Held(EVERY),
    "executors that die, or outlive their driver": Held(("elastic",)),
    "a broker and a receiver that die": Held(("inputs", "kafka")),
    "a full disk, slow renames, clocks that are off": Held(EVERY),
    "a bit of the checkpoint that is flipped": Held(EVERY),
}
