"""Files of the partials that are kept for late rows: many small files are copied into one.

Each batch writes a few files, and a pane is kept for days of them: without copies there would be a file per task and
batch. A partial is copied until the file that holds it is large enough.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from typing import Final

from skypane.operators.amendments import ClosedPanes
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine import partials
from skypane.runtime.spark.engine.partials import PartialReader, PartialReference, attempt_name

COPIED: Final = 99_996
"""Task number, in a file's name, of the partials that were copied."""
MANY_FILES: Final = 64
LARGE: Final = 1 << 20
"""Bytes of partials from which a file is not copied again."""

KeptPanes = ClosedPanes[PartialReference]


def size_of(ref: PartialReference) -> int:
    """Return the bytes of a partial."""
    return ref.size


def refs_of(kept: KeptPanes) -> list[PartialReference]:
    """Return the references to all partials."""
    return [ref for refs in kept.panes.values() for ref in refs]


def compacted(
    store: DocumentStore, kept: KeptPanes, others: Collection[str], batch_id: int
) -> tuple[KeptPanes, frozenset[str]]:
    """Return the panes with the partials of small files copied into one file, if they are many; and the file's name.

    others   files that are needed anyway, which are not copied
    """
    sizes: Counter[str] = Counter()
    for ref in refs_of(kept):
        sizes[ref.file] += ref.size
    small = {file for file, size in sizes.items() if size < LARGE and file not in others}
    if len(small) < MANY_FILES:
        return kept, frozenset()
    moving = [ref for ref in refs_of(kept) if ref.file in small]
    read = PartialReader(store)
    copies = partials.write(store, attempt_name(batch_id, COPIED), [read(ref) for ref in moving])
    new = dict(zip(moving, copies, strict=True))
    panes = {pane: tuple(new.get(ref, ref) for ref in refs) for pane, refs in kept.panes.items()}
    return replace(kept, panes=panes), frozenset(ref.file for ref in copies)
