"""The interface of the ownership of a checkpoint: the right to change it, which a driver takes when it starts.

A driver that takes it fences the previous one, which can commit nothing more. Where the store renames folders, the
owner has a folder (ownership.py); where it has conditional writes, the owner is named in one object (head_ownership.py).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from skypane.runtime.spark.document_store import DocumentStore
from skypane.types import CheckpointError


class Owner(ABC):
    """The right to change a checkpoint.

    driver   name of this start, which sorts after those of all earlier ones
    """

    __slots__ = ()
    driver: str

    @property
    @abstractmethod
    def place(self) -> str:
        """The place whose loss means that this driver is fenced."""

    @abstractmethod
    def check(self) -> None:
        """Raise CheckpointError if this driver was fenced."""

    @abstractmethod
    def write(self, target: DocumentStore, name: str, value: object) -> None:
        """Replace a document of the checkpoint; raise CheckpointError, with nothing changed, if fenced."""

    @abstractmethod
    def remove(self, target: DocumentStore, names: Iterable[str]) -> None:
        """Delete those files of the checkpoint that exist; raise CheckpointError if this driver was fenced."""

    @contextmanager
    def in_charge(self) -> Iterator[None]:
        """Replace any error inside the context by a CheckpointError if this driver was fenced: its files are gone."""
        try:
            yield
        except Exception:
            self.check()
            raise

    def lost(self) -> CheckpointError:
        return CheckpointError(
            f"another driver has started on the checkpoint of {self.place} and taken it over: this one stops, "
            f"and the other one repeats its uncommitted work. Run one driver at a time, or give each its own checkpoint"
        )
