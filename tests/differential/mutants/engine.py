"""Mutants of the engine on Spark: its stages, its memory, its sinks; and of the batch queries."""

from __future__ import annotations

from functools import partial
from typing import Final

from tests.differential.mutants.mutant import Mutant

_on_spark = partial(Mutant, spark=True)

ENGINE: Final = (
    _on_spark(
        "late-untold",
        "runtime/spark/engine/plq.py",
        "yield from (*task.rejection.late, *task.rejection.elsewhere)",
        "yield from task.rejection.elsewhere",
        "progress is not told of late rows",
    ),
    _on_spark(
        "first-task-only",
        "runtime/spark/engine/plq.py",
        "return (pane for task in self.tasks for pane in task.panes)",
        "return (pane for task in self.tasks[:1] for pane in task.panes)",
        "partials of all tasks but the first are lost",
    ),
    _on_spark(
        "merged-but-first",
        "runtime/spark/engine/ingest.py",
        "combine([read(ref) for ref in panes.panes[pane]])",
        "combine([read(ref) for ref in panes.panes[pane][1:]])",
        "of partials that are merged for keeping the first is lost",
    ),
    _on_spark(
        "merged-misplaced",
        "runtime/spark/engine/ingest.py",
        "panes.replace(zip(scattered, refs, strict=True))",
        "panes.replace(zip(reversed(scattered), refs, strict=True))",
        "partials that are merged for keeping come under other panes",
    ),
    _on_spark(
        "given-up-answered",
        "runtime/spark/engine/ingest.py",
        "panes = state.open.without(step.abandoned)",
        "panes = state.open",
        "rows that are given up are quarantined and answered",
    ),
    _on_spark(
        "retired-by-the-last",
        "runtime/spark/engine/window_program.py",
        "still = panes.retire(answered_to)",
        "still = panes.retire(state.progress.punctuation)",
        "windows that a batch has answered are answered by the next one too",
    ),
    _on_spark(
        "last-run-lost",
        "runtime/spark/engine/wlq.py",
        "numbers = spark.range(0, stage.tasks, 1, stage.tasks)",
        "numbers = spark.range(0, max(1, stage.tasks - 1), 1, stage.tasks)",
        "the last run of windows is not answered on workers",
    ),
    _on_spark(
        "last-thread-lost",
        "runtime/spark/engine/wlq.py",
        "pool.map(stage.done, range(stage.tasks))",
        "pool.map(stage.done, range(max(1, stage.tasks - 1)))",
        "the last run of windows is not answered in threads",
        ("skyline",),
    ),
    _on_spark(
        "part-and-run",
        "runtime/spark/engine/wlq.py",
        "query.part_of(load(ref), piece.part, piece.parts)",
        "query.part_of(load(ref), 0, piece.parts)",
        "of the keys that workers divide all answer the same",
        ("aggregate",),
    ),
    _on_spark(
        "oldest-manifest",
        "runtime/spark/engine/ledger.py",
        "self._read(self._batches[-1]) if self._batches else None",
        "self._read(self._batches[0]) if self._batches else None",
        "a restart goes on from the first manifest",
    ),
    _on_spark(
        "drain-uncounted",
        "runtime/spark/engine/shell.py",
        "seen, before.drains + drain, waiting)",
        "seen, before.drains, waiting)",
        "batches after a drain have the number of the one before",
    ),
    _on_spark(
        "batch-again",
        "runtime/spark/engine/shell.py",
        "if batch_id == self._committed.batch_id:",
        "if batch_id == -self._committed.batch_id:",
        "a batch that comes again is not known",
    ),
    _on_spark(
        "needed-removed",
        "runtime/spark/engine/shell.py",
        "unneeded - outcome.state.files",
        "unneeded - before.state.files",
        "files that the state needs are removed",
    ),
    _on_spark(
        "next-window-lost",
        "runtime/spark/engine/window_state.py",
        'next_window = operator["next_window"]',
        "next_window = None",
        "a restart does not know which windows have been answered",
    ),
    _on_spark(
        "first-partial-only",
        "runtime/spark/engine/window_state.py",
        "tuple(map(PartialReference.restored, refs)) for pane",
        "tuple(map(PartialReference.restored, refs[:1])) for pane",
        "after a restart a pane has one partial",
    ),
    _on_spark(
        "told-forgotten",
        "runtime/spark/engine/front_program.py",
        "self._compacted((*state.front_partials, *due), front, batch.batch_id)",
        "self._compacted(due, front, batch.batch_id)",
        "after a restart the front has the rows of the last batch alone",
        ("continuous",),
    ),
    _on_spark(
        "shard-answers-first",
        "runtime/spark/engine/shard_stage.py",
        "(arrivals, stored), setting = self.requests[shard]",
        "(arrivals, stored), setting = self.requests[0]",
        "all shards answer the question of the first",
        ("continuous",),
    ),
    _on_spark(
        "file-of-last-batch",
        "runtime/spark/sinks/directory.py",
        'return f"{self.holds}-{batch_id:012d}"',
        'return f"{self.holds}-{batch_id // 2:012d}"',
        "a batch's files replace those of the batch before",
    ),
    _on_spark(
        "one-run-only",
        "runtime/spark/batch.py",
        "return windows[0] // self.run, windows[-1] // self.run, part.partial.schema",
        "return windows[0] // self.run, windows[0] // self.run, part.partial.schema",
        "a pane is sent to the first run of windows that holds it",
    ),
    _on_spark(
        "other-runs-windows",
        "runtime/spark/batch.py",
        "for task in panes.all_windows() if task.window // self.run == run // self.parts]",
        "for task in panes.all_windows() if task.window // self.run >= run // self.parts]",
        "windows of the next run are answered in part, too",
    ),
)
