"""Samples of the processes and folders of the endurance run, and their table."""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from measure.java_heap import live_bytes
from measure.processes import family, resident_bytes
from measure.tables import markdown_table, replace_between

MIB = 1 << 20
_PROC = Path("/proc")
_SHOWN = 10
MARK = "endurance"


@dataclass(frozen=True)
class Sample:
    """After so many batches of each query; memory in MiB, by process, Java's what lives in its heap.

    state    files of both checkpoints, of Spark's and ours
    logs     segments of the receiver, and what lies beside them
    passing  Spark's temporary files
    """

    batches: dict[str, int]
    seconds: float
    memory: dict[str, float]
    handles: dict[str, int]
    threads: dict[str, int]
    workers: int
    state: int
    logs: int
    passing: int


def taken(spark: SparkSession, batches: dict[str, int], seconds: float, folder: Path, receiver: int) -> Sample:
    """Collect garbage, and look."""
    gc.collect()
    heap = live_bytes(spark)
    memory, handles, threads, workers = Counter[str](), Counter[str](), Counter[str](), 0
    for process in family():
        kind = _kind(process, receiver)
        try:
            resident = resident_bytes(process)
            handles[kind] += _entries(_PROC / str(process) / "fd")
            threads[kind] += _entries(_PROC / str(process) / "task")
        except OSError:  # the process has ended meanwhile
            continue
        workers += kind == "workers"
        memory[kind] += resident
    told = {kind: round(size / MIB, 1) for kind, size in memory.items()}
    told["heap"] = round(heap / MIB, 1)
    return Sample(
        batches=batches,
        seconds=round(seconds, 3),
        memory=told,
        handles=dict(handles),
        threads=dict(threads),
        workers=workers,
        state=sum(_files(folder / name) for name in ("windows-state", "front-state")),
        logs=_files(folder / "received"),
        passing=_files(folder / "passing"),
    )


def _entries(folder: Path) -> int:
    return sum(1 for _ in folder.iterdir())


def _files(folder: Path) -> int:
    return sum(len(files) for _, _, files in os.walk(folder))


def _kind(process: int, receiver: int) -> str:
    if process == os.getpid():
        return "driver"
    if process == receiver:
        return "receiver"
    try:
        return "java" if "java" in (_PROC / str(process) / "comm").read_text() else "workers"
    except OSError:
        return "workers"


def lines(samples: Sequence[Sample], document: Path | None) -> None:
    """Print the table, ten lines of it at most; write it into a document."""
    step = max(1, -(-len(samples) // _SHOWN))
    shown = [one for index, one in enumerate(samples) if (len(samples) - 1 - index) % step == 0]
    head = ["batches: windows, front", "ms a batch, median", "driver, MiB", "Java's live heap", "Java", "Python workers",
            "receiver", "open files: driver, Java, workers, receiver", "threads", "files: checkpoints, receiver's, temporary"]  # fmt: skip
    table = markdown_table(head, [_row(one) for one in shown])
    print(table)
    if document is not None:
        replace_between(document, MARK, table)


def _row(one: Sample) -> list[str]:
    kinds = ("driver", "java", "workers", "receiver")
    return [
        ", ".join(f"{number:,}" for number in one.batches.values()),
        f"{one.seconds * 1_000:,.0f}",
        *(f"{one.memory.get(kind, 0):,.0f}" for kind in ("driver", "heap", "java", "workers", "receiver")),
        ", ".join(str(one.handles.get(kind, 0)) for kind in kinds),
        ", ".join(str(one.threads.get(kind, 0)) for kind in kinds),
        f"{one.state}, {one.logs}, {one.passing}",
    ]
