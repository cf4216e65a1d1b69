"""Frozen description of several windowed queries over one read of one stream, by name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from skypane.operators.amendments import AmendRule
from skypane.operators.query import Query
from skypane.plan import ContinuousPlan, Plan, definition_of
from skypane.progress import ProgressPolicy
from skypane.types import ConfigError

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


@dataclass(frozen=True)
class SharedPlan:
    """The plans of several queries by name; all have one time column, one source column and one progress policy.

    Each query has panes, windows and a punctuation of its own: the policy follows the panes of each query. So each query
    answers, drops and quarantines the same rows as it would alone, however different its windows are.
    """

    plans: Mapping[str, Plan]

    def __post_init__(self) -> None:
        if not self.plans:
            raise ConfigError("queries must have at least one query by name, such as {'best': sp.Skyline(...)}")
        for name, plan in self.plans.items():
            check_name(name)
            if isinstance(plan, ContinuousPlan):
                raise ConfigError(f"query {name!r} is a continuous skyline, which answers no windows: run it as a job")

    @property
    def lead(self) -> str:
        """The query with the shortest panes, by which rows are exchanged between tasks."""
        return min(self.plans, key=lambda name: self.plans[name].windows.longest_pane)

    @property
    def _first(self) -> Plan:
        return next(iter(self.plans.values()))

    @property
    def time(self) -> str:
        return self._first.time

    @property
    def source(self) -> str | None:
        return self._first.source

    @property
    def progress(self) -> ProgressPolicy:
        return self._first.progress

    @property
    def amend(self) -> AmendRule | None:
        return self._first.amend

    @property
    def queries(self) -> tuple[Query, ...]:
        """The queries, in order."""
        return tuple(plan.query for plan in self.plans.values())

    def validate(self, schema: pa.Schema) -> None:
        """Raise ConfigError, naming the query, if one of them cannot run on rows of `schema`."""
        for name, plan in self.plans.items():
            try:
                plan.validate(schema)
            except ConfigError as error:
                raise ConfigError(f"query {name!r}: {error}") from None

    def reads(self, schema: pa.Schema) -> tuple[str, ...]:
        """Return the columns of `schema` that at least one query reads, in the order of the schema."""
        read = {column for plan in self.plans.values() for column in plan.reads(schema)}
        return tuple(name for name in schema.names if name in read)

    def answer_schemas(self, schema: pa.Schema) -> dict[str, pa.Schema]:
        """Return the schema of each query's answers for rows of `schema`; a query knows of the columns that it reads."""
        return {
            name: plan.output_schema(pa.schema([schema.field(column) for column in plan.reads(schema)]))
            for name, plan in self.plans.items()
        }

    @property
    def in_words(self) -> list[tuple[str, str]]:
        """Each query and its windows, in words, by name; what holds for all of them comes last."""
        each = [(name, f"{plan.query}; windows: {plan.windows_in_words}") for name, plan in self.plans.items()]
        return [*each, *self._first.answers_in_words]

    def describe(self) -> dict[str, Any]:
        """Return a JSON value that is equal for two plans if and only if one may resume the other's checkpoint."""
        described = {name: plan.describe() for name, plan in self.plans.items()}
        queries = {name: {key: value[key] for key in ("query", "window")} for name, value in described.items()}
        changes = {key: value for key, value in self._first.describe().items() if key == "answers"}
        return {
            **changes,
            "queries": queries,
            "time": self.time,
            "source": self.source,
            "progress": self.progress.describe(),
        }

    @property
    def rules(self) -> dict[str, Any]:
        """The rest from which answers follow, which is the same for all queries: see Plan.rules."""
        return self._first.rules

    def definition(self, schema: pa.Schema) -> dict[str, Any]:
        """Return what identifies the queries over rows of `schema` in a checkpoint, see Plan.definition()."""
        return definition_of(self.describe(), schema)


def check_name(name: str) -> None:
    """Raise ConfigError unless `name` can be the name of a query and of its folder."""
    if not _NAME.fullmatch(str(name)):
        raise ConfigError(
            f"the name of a query must be of letters, digits, '_' and '-', as its folder has that name, got {name!r}"
        )
