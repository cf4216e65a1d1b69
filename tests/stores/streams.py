"""A stream of tests/chaos whose checkpoint and outputs are in a bucket, and a copy of them on disk for its checks."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.chaos.driver import Stream, drive
from tests.servers.s3 import BUCKET

from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine.checkpoint_head import read_head

SCENARIOS: Final = ("skyline", "sums", "continuous", "shared", "amended", "early", "rolling")
"""The streams of tests/chaos that are run here: those that differ in what they write."""


@dataclass(frozen=True)
class BucketStream(Stream):
    """A stream; Spark's own log stays in `folder`."""

    @property
    def place(self) -> str:
        return f"s3://{BUCKET}/{self.folder.name}"

    def check(self) -> bool:
        """Start once more, which removes what failed attempts left, and compare all in the bucket with brute force."""
        drive(self, random.Random(0))
        copied(DocumentStore.at(self.place), self.folder)
        return super().check()


def copied(store: DocumentStore, folder: Path) -> None:
    """Copy a folder of a bucket; the documents in the head of a checkpoint become files, as they are elsewhere."""
    folder.mkdir(exist_ok=True)
    for name in store.names():
        (folder / name).write_bytes(store.read(name))
    head = read_head(store)
    if head is not None:
        local = DocumentStore.at(str(folder))
        for path, document in head[0].documents.items():
            parent, _, name = path.rpartition("/")
            target = local.child(parent) if parent else local
            target.make()
            target.write_json(name, document)
        for expected in ("partials", "rejected", "answers"):  # which a bucket has only while there are files in them
            local.child(expected).make()
    for name in store.folders():
        copied(store.child(name), folder / name)
