"""What other packages add to skypane, as entry points that their packages declare.

| group | what an entry point names |
|---|---|
| `skypane.commands` | a module with `add_parser` and `run`: the command `skypane NAME` |
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Final

COMMANDS: Final = "skypane.commands"


def plugins(group: str) -> list[EntryPoint]:
    """Return the entry points of a group, by name; none is loaded. Two packages that declare one name both stand there."""
    return sorted(entry_points(group=group), key=lambda found: found.name)
