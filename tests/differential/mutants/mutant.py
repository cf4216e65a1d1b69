"""A mutant: a small fault, put into a copy of the sources, that some random case must show."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """One change of one file that changes some answer.

    file    below src/skypane
    old     text that stands there exactly once; `new` takes its place
    why     what goes wrong then
    kinds   kinds of cases to try first; then all are tried
    spark   whether only a run on Spark can show it
    """

    id: str
    file: str
    old: str
    new: str
    why: str
    kinds: tuple[str, ...] = ()
    spark: bool = False

    @property
    def layer(self) -> str:
        """The part of the package that the file is of."""
        first = self.file.partition("/")[0]
        return {"windows.py": "progress", "runtime": "engine"}.get(first, first)

    def applied(self, source: str) -> str:
        """Return the source with the change; ValueError unless the old text stands there exactly once."""
        if (found := source.count(self.old)) != 1:
            raise ValueError(f"{self.id}: {self.old!r} stands {found} times in {self.file}")
        return source.replace(self.old, self.new)
