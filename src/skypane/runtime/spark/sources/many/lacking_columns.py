"""Columns of the schema that no input has: the log names them once, because they are null in every row."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Protocol, runtime_checkable

import pyarrow as pa

from skypane.naming import instead, shortened
from skypane.runtime.columns_to_read import names_of
from skypane.runtime.spark.sources.many.input_kind import InputExtent

_log = logging.getLogger(__name__)


@runtime_checkable
class NamingInput(Protocol):
    """An input that names its columns before its rows (optional)."""

    def names(self) -> tuple[str, ...] | None:
        """Return the names of its columns, none if they are not there yet; None if each row may have any."""


class LackingColumns:
    """Looks for the columns of a schema in the first inputs that there are, until each has been found, or reported."""

    def __init__(self, columns: pa.Schema) -> None:
        self._columns = columns
        self._left = set(columns.names)
        self._seen: dict[str, tuple[str, ...]] = {}

    def look(self, found: Mapping[str, InputExtent]) -> None:
        """Look at the inputs of a discovery; report the columns that those so far lack, once."""
        if not self._left:
            return
        for name, one in found.items():
            if name not in self._seen:
                names = one.input.names() if isinstance(one.input, NamingInput) else None
                if names is None:  # its rows may have them
                    self._left.clear()
                    return
                if not names:
                    continue
                self._seen[name] = names
                try:
                    self._left -= {*names_of(self._columns, names)}
                except ValueError:  # its rows are malformed, with this reason
                    self._left -= {*names}
        if self._left and self._seen:
            there = [*dict.fromkeys(name for names in self._seen.values() for name in names)]
            hints = "; ".join(f"{name!r}: {shortened(instead(name, there))}" for name in sorted(self._left))
            self._left.clear()  # other files are not opened for a second report
            _log.warning("no input has these columns of the schema, so they are null in every row: %s", hints)
