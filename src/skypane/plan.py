"""Frozen description of a windowed query, validated once; the local and Spark runtimes run it, in batch and stream."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa

from skypane.operators.entry.entry_rules import EntryRules
from skypane.operators.fronts import ContinuousSkyline, update_schema
from skypane.operators.query import Query
from skypane.operators.window_query import WindowQuery
from skypane.progress import KSlack, ProgressPolicy
from skypane.types import ConfigError, Length
from skypane.windows import Windows


@dataclass(frozen=True)
class Plan:
    """A query, its windows, the time column, and the policy that decides when a pane is complete.

    time      event-time column, a timestamp
    progress  progress policy of a stream; a batch query has all rows before it answers and ignores it and `source`
    source    column with the source of each row, by which late rows are counted; or None
    """

    query: Query
    windows: Windows
    time: str
    progress: ProgressPolicy = field(default_factory=KSlack)
    source: str | None = None

    @cached_property
    def gate(self) -> EntryRules:
        return EntryRules(self.windows, self.time, tuple(self.query.required), self.source)

    def validate(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of the answers; raise ConfigError if the query cannot run on rows of `schema`."""
        self.gate.validate(schema)
        if self.progress.needs_source and self.source is None:
            name = type(self.progress).__name__
            raise ConfigError(f"{name} needs the newest time of each source: name the column with the source, source=")
        self.query.validate(schema)
        return self.output_schema(schema)

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of the answers for rows of `schema`; ConfigError if it would be invalid."""
        return self.window_query(schema).output_schema(schema)

    def reads(self, schema: pa.Schema) -> tuple[str, ...]:
        """Return the columns of `schema` that the plan reads, in the order of the schema."""
        read = {self.time, self.source, *self.query.required, *self.query.reads(schema)}
        return tuple(name for name in schema.names if name in read)

    def window_query(self, schema: pa.Schema) -> WindowQuery:
        return WindowQuery(self.query, self.windows, schema.field(self.time).type.tz)

    @property
    def windows_in_words(self) -> str:
        """The windows and their time column, in words."""
        return f"{Length(self.windows.length).words} of {self.time}, every {Length(self.windows.slide).words}"

    def describe(self) -> dict[str, Any]:
        """Return a JSON value that is equal for two plans if and only if one may resume the other's checkpoint."""
        return {
            "query": self.query.describe(),
            "window": {
                "length": self.windows.length,
                "slide": self.windows.slide,
                "offset": self.windows.offset,
            },
            "time": self.time,
            "source": self.source,
            "progress": self.progress.describe(),
        }


@dataclass(frozen=True)
class ContinuousPlan(Plan):
    """A continuous skyline: rows are buffered by pane, and the front takes the rows of each pane that closes.

    The panes are tumbling windows. Time advances from pane to pane: updates are emitted up to the end of the last
    closed pane.
    """

    query: ContinuousSkyline

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        return update_schema(self.query, schema)

    @property
    def windows_in_words(self) -> str:
        """The windows and their time column, in words."""
        every = Length(self.windows.length).words
        return f"the last {Length(self.query.window).words} of {self.time} at any time, updated every {every}"
