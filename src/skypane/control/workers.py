"""How many workers each level may use: a request, which holds from the next batch on."""

from __future__ import annotations

from dataclasses import dataclass

from skypane.control.snapshots import JsonState
from skypane.types import ConfigError


@dataclass(frozen=True, slots=True)
class Workers(JsonState):
    """Tasks of the pane-level query, where rows are exchanged, and tasks of the window-level query, at most."""

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
