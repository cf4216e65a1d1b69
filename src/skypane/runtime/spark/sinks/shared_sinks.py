"""The sinks of several queries that share a stream: one for each query's answers, and one for the rejected rows of all."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Self

import pyarrow as pa

from skypane.naming import instead
from skypane.runtime.spark.sinks.directory import Directory
from skypane.runtime.spark.sinks.sink import Sink
from skypane.runtime.spark.sinks.sink_arguments import Output, check_apart, check_stays, of_one_job, sink
from skypane.types import ConfigError


def output_of(query: str) -> str:
    """Return the role of the sink that takes a query's answers."""
    return f"output of {query}"


@dataclass(frozen=True)
class SharedSinks:
    """The sinks of a job of several queries.

    outputs   answers, by the name of the query
    late      rejected rows of all queries; None: they are only counted
    """

    outputs: Mapping[str, Sink]
    late: Sink | None = None

    @classmethod
    def of(cls, output: Output | Mapping[str, Output] | None, late: Output | None, names: Collection[str]) -> Self:
        """Return the sinks of the user's arguments for queries of these names.

        A folder, a path or a Directory, gets a folder for each query; other sinks are given by name.
        """
        outputs = {output_of(name): one for name, one in _by_name(output, names).items()}
        given = of_one_job({**outputs, "late": late})
        return cls(
            {name: sink(given[output_of(name)], output_of(name)) for name in names},
            None if late is None else sink(given["late"], "late").for_rejected(),
        )

    @property
    def by_role(self) -> dict[str, Sink]:
        """The sinks by role."""
        by_role = {output_of(name): taker for name, taker in self.outputs.items()}
        return by_role if self.late is None else by_role | {"late": self.late}

    def check(self, schemas: Mapping[str, pa.Schema]) -> None:
        """Raise ConfigError if a sink cannot hold its rows, or if two need the same folder; `schemas` is by role."""
        check_stays({output_of(name): taker for name, taker in self.outputs.items()}, schemas)
        for role, taker in self.by_role.items():
            taker.check(schemas[role])
        check_apart(self.by_role)


def _by_name(output: object, names: Collection[str]) -> Mapping[str, object]:
    if isinstance(output, Mapping):
        for name in output.keys() - set(names):
            raise ConfigError(f"output has a sink for {name!r}, which is no query: {instead(str(name), list(names))}")
        missing = [name for name in names if name not in output]
        if missing:
            raise ConfigError(f"output has no sink for {', '.join(map(repr, missing))}: give each query one")
        _check_own(output)
        return output
    folder = Directory(os.fspath(output)) if isinstance(output, (str, os.PathLike)) else output
    if not isinstance(folder, Directory):
        raise ConfigError(
            f"output must be a folder, in which each query gets a folder of its name, or a sink for each query, "
            f"{{{', '.join(f'{name!r}: ...' for name in names)}}}, got {output!r}"
        )
    return {name: replace(folder, path=str(folder.store.place.child(name))) for name in names}


def _check_own(outputs: Mapping[str, object]) -> None:
    """Raise ConfigError if two queries have one sink, which knows a batch by its number: both have the same."""
    for (name, sink_of_one), (other, sink_of_other) in combinations(outputs.items(), 2):
        if sink_of_one is sink_of_other and not isinstance(sink_of_one, (str, os.PathLike)):
            raise ConfigError(
                f"output has one sink for {name!r} and {other!r}, {sink_of_one!r}: give each query one of its own"
            )
