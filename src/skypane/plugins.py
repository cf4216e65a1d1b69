"""Extension points: things selected by name, from skypane's registries and from entry points of other packages.

| group | what an entry point names | where its name is used |
|---|---|---|
| `skypane.commands` | a module with `add_parser` and `run` | the command `skypane NAME` |
| `skypane.queries` | a query (`operators/query.py`) | job files: `kind:` |
| `skypane.functions` | a function that returns an aggregate function | aggregate expressions: "NAME(column)" |
| `skypane.progress` | a progress policy | job files: `policy:` |
| `skypane.elasticity` | an option for `elastic=` | job files: `elastic:` |
| `skypane.sinks` | a sink | job files: `format:` |
| `skypane.inputs` | a module as described in `sources/many/input_kind.py` | the mapping of an input: its KEY |

A package declares them in its pyproject.toml:

    [project.entry-points."skypane.sinks"]
    Sqlite = "mypackage.sinks:Sqlite"
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any, Final

COMMAND_GROUP: Final = "skypane.commands"


def plugins(group: str) -> list[EntryPoint]:
    """Return the entry points of a group, sorted by name and not loaded; a name from two packages is in it twice."""
    return sorted(entry_points(group=group), key=lambda found: found.name)


class Registered(Mapping[str, Any]):
    """The entries of a registry by name: skypane's own in the order of its lines, then those of other packages.

    A registry is a module with one import for each entry and with `_GROUP`, the group of entry points that extends it.
    Plugins are loaded at the first lookup, so that they can import skypane.
    """

    def __init__(self, registry: ModuleType, named: Callable[[str, Any], str] = lambda name, _value: name) -> None:
        self._registry = registry
        self._named = named

    def __getitem__(self, name: str) -> Any:
        return self._all[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    @cached_property
    def _all(self) -> dict[str, Any]:
        own = {name: value for name, value in vars(self._registry).items() if not name.startswith("_")}
        for plugin in plugins(self._registry._GROUP):  # noqa: SLF001 - not one of the names that it registers
            own.setdefault(plugin.name, None)
            if own[plugin.name] is None:
                own[plugin.name] = plugin.load()
        return {self._named(name, value): value for name, value in own.items()}
