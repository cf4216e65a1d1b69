"""The state that the punctuation laws share, as a value that goes into a ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

from skypane.progress.future import Held
from skypane.progress.pauses import Pauses
from skypane.types import CheckpointError, Length, Micros

#: Annotations of fields that hold whole numbers.
_WHOLE = ("int", "Micros", "Micros | None")
_FRACTION = ("float",)
#: Fields that checkpoints of earlier versions lack: they begin as they are at the start of a stream.
_ADDED = frozenset({"pauses"})


@dataclass(frozen=True)
class Progress:
    """How far a stream has come; see ProgressState for the meaning of the first six.

    A field whose class has snapshot() and restored() is written by them.
    """

    punctuation: Micros | None = None
    newest: Micros | None = None
    slack: Micros = 0
    seen: int = 0
    dropped: int = 0
    held: Held = field(default_factory=Held)
    #: Rows that were held and given up, since the start.
    given_up: int = 0
    #: What a drain tells a pause from a wrong clock by.
    pauses: Pauses = field(default_factory=Pauses)

    def snapshot(self) -> dict[str, Any]:
        """Return the state as a JSON object, one entry per field."""
        return {item.name: _written(getattr(self, item.name)) for item in fields(self)}

    @classmethod
    def restored(cls, snapshot: Mapping[str, Any]) -> Self:
        """Return the state whose snapshot() this is."""
        expected = {item.name for item in fields(cls)}
        if set(snapshot) | _ADDED != expected:
            raise CheckpointError(
                f"progress state needs exactly the fields {sorted(expected)}, the checkpoint has {sorted(snapshot)}"
            )
        values = dict(snapshot)
        for item in fields(cls):
            if item.name not in values:
                continue
            value = values[item.name]
            if callable(item.default_factory) and hasattr(item.default_factory, "restored"):
                values[item.name] = item.default_factory.restored(value)
            elif (
                item.type in _WHOLE
                and type(value) not in {int, Length}
                and not (value is None and item.default is None)
            ):
                raise CheckpointError(
                    f"progress state needs a whole number for {item.name}, the checkpoint has {value!r}"
                )
            elif item.type in _FRACTION and type(value) not in {int, float}:
                raise CheckpointError(f"progress state needs a number for {item.name}, the checkpoint has {value!r}")
        return cls(**values)


def _written(value: Any) -> Any:
    return value.snapshot() if hasattr(value, "snapshot") else value
