"""Numbers of workers that each level may use from the next batch on."""

from __future__ import annotations

from dataclasses import dataclass

from skypane.snapshots import JsonState
from skypane.types import ConfigError


@dataclass(frozen=True, slots=True)
class Workers(JsonState):
    """Largest numbers of tasks of the pane-level query, if rows are exchanged, and of the window-level query."""

    plq: int
    wlq: int

    def __post_init__(self) -> None:
        for level in ("plq", "wlq"):
            workers = getattr(self, level)
            if type(workers) is not int or workers < 1:
                raise ConfigError(f"{level}_workers must be a whole number of at least 1, got {workers!r}")

    @property
    def total(self) -> int:
        return self.plq + self.wlq
