"""One frozen description of a windowed query, validated once; local and Spark run it, in batch and in stream."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa

from skypane.operators.continuous import ContinuousSkyline, update_schema
from skypane.operators.entry.gate import Gate
from skypane.operators.query import Query
from skypane.operators.window_query import WindowQuery
from skypane.progress import KSlack, ProgressPolicy
from skypane.types import ConfigError, Length
from skypane.windows import Windows


@dataclass(frozen=True)
class Plan:
    """What is asked, of which windows, over which time column, and when a pane counts as complete.

    time      event-time column, a timestamp
    progress  of a stream; a batch has all its rows before it answers, and looks neither here nor at `source`
    source    column that names the source of a row, to count late rows by; or None
    """

    query: Query
    windows: Windows
    time: str
    progress: ProgressPolicy = field(default_factory=KSlack)
    source: str | None = None

    @cached_property
    def gate(self) -> Gate:
        return Gate(self.windows, self.time, tuple(self.query.required), self.source)

    def validate(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of the answers; raise ConfigError where rows of `schema` cannot be answered."""
        self.gate.validate(schema)
        if self.progress.needs_source and self.source is None:
            name = type(self.progress).__name__
            raise ConfigError(f"{name} goes by the newest time of each source: name the column that tells it, source=")
        self.query.validate(schema)
        return self.output_schema(schema)

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of the answers to rows of `schema`; ConfigError if they cannot have it."""
        return self.window_query(schema).output_schema(schema)

    def reads(self, schema: pa.Schema) -> tuple[str, ...]:
        """Return the columns of `schema` that anything here looks at, in its order."""
        read = {self.time, self.source, *self.query.required, *self.query.reads(schema)}
        return tuple(name for name in schema.names if name in read)

    def window_query(self, schema: pa.Schema) -> WindowQuery:
        return WindowQuery(self.query, self.windows, schema.field(self.time).type.tz)

    @property
    def windows_in_words(self) -> str:
        """Which windows there are, of which time."""
        return f"{Length(self.windows.length).words} of {self.time}, every {Length(self.windows.slide).words}"

    def describe(self) -> dict[str, Any]:
        """Return a JSON value that is equal for two plans exactly when one may continue the other's checkpoint."""
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
    """A continuous skyline: rows wait by panes, which here are tumbling windows, and the front takes those that are closed.

    So time moves on from pane to pane: updates are told up to the end of the last pane that is closed.
    """

    query: ContinuousSkyline

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        return update_schema(self.query, schema)

    @property
    def windows_in_words(self) -> str:
        """Which windows there are, of which time."""
        every = Length(self.windows.length).words
        return f"the last {Length(self.query.window).words} of {self.time} at any time, told every {every}"
