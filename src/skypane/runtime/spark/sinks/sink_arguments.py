"""Sinks from the user's arguments `output`, `late` and `front`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Self, TypeAlias, TypeGuard

import pyarrow as pa
from pyspark.sql import DataFrame

from skypane.operators.stay_columns import are_stays
from skypane.plugins import Registered
from skypane.runtime.spark.sinks import registry
from skypane.runtime.spark.sinks.console import Console
from skypane.runtime.spark.sinks.current_front import Current
from skypane.runtime.spark.sinks.directory import Directory
from skypane.runtime.spark.sinks.function import Call
from skypane.runtime.spark.sinks.memory import Memory
from skypane.runtime.spark.sinks.sink import Sink
from skypane.types import ConfigError

Output: TypeAlias = "str | os.PathLike[str] | Sink | Callable[[DataFrame, int], None]"


@dataclass(frozen=True)
class Sinks:
    """The sinks of a job.

    output   answers, or the updates of a continuous skyline
    late     rejected rows; None: they are only counted
    front    the current front of a continuous skyline
    """

    output: Sink
    late: Sink | None = None
    front: Sink | None = None

    @classmethod
    def of(cls, output: Output | None, late: Output | None = None, front: Output | None = None) -> Self:
        """Return the sinks of the user's arguments."""
        if isinstance(front, str | os.PathLike):
            front = Current(os.fspath(front))
        given = of_one_job({"output": output, "late": late, "front": front})
        return cls(
            sink(given["output"]),
            None if late is None else sink(given["late"], "late").for_rejected(),
            None if front is None else sink(given["front"], "front"),
        )

    @property
    def by_role(self) -> dict[str, Sink]:
        """The sinks by the name of their argument."""
        by_role = {"output": self.output, "late": self.late, "front": self.front}
        return {role: taker for role, taker in by_role.items() if taker is not None}

    def check(self, schemas: Mapping[str, pa.Schema]) -> None:
        """Raise ConfigError if a sink cannot hold its rows, or if two need the same folder; `schemas` is by role."""
        check_stays({"output": self.output}, schemas)
        for role, taker in self.by_role.items():
            taker.check(schemas[role])
        check_apart(self.by_role)


def of_one_job(given: Mapping[str, object]) -> dict[str, object]:
    """Return the user's arguments by role, with sinks that no other job uses; one that has two roles keeps both."""
    mine = {id(one): one.for_job() if _is_sink(one) else one for one in given.values()}
    return {role: mine[id(one)] for role, one in given.items()}


def _is_sink(output: object) -> TypeGuard[Sink]:
    return isinstance(output, Sink) and not isinstance(output, type)


def sink(output: object, field: str = "output") -> Sink:
    """Return the sink for the user's argument `field`."""
    if _is_sink(output):
        return output
    if isinstance(output, (str, os.PathLike)):
        return Directory(os.fspath(output))
    if callable(output) and not isinstance(output, type):
        return Call(output)
    raise ConfigError(
        f"{field} must be a path, {', '.join(Registered(registry))}, or a function of (DataFrame, batch id), "
        f"got {output!r}"
    )


def check_stays(outputs: Mapping[str, Sink], schemas: Mapping[str, pa.Schema]) -> None:
    """Raise ConfigError, naming the argument, if a sink of answers gets stays, and could not compare a repeated batch."""
    for role, taker in outputs.items():
        if are_stays(schemas[role]) and not _takes_stays(taker):
            got = f"format {taker.format!r}" if isinstance(taker, Directory) else f"a sink of {type(taker).__name__}"
            raise ConfigError(
                f'{role}: answers="stays" needs a folder of parquet files, or a function, as a batch that comes again after a '
                f"kill may be cut into other stays, which others could not compare with those that are there; got {got}"
            )


def _takes_stays(taker: Sink) -> bool:
    return taker.format == "parquet" if isinstance(taker, Directory) else isinstance(taker, Memory | Console | Call)


def check_apart(takers: Mapping[str, Sink]) -> None:
    """Raise ConfigError, naming the arguments, if two sinks need the same folder under any spelling."""
    places = {name: place for name, taker in takers.items() if (place := taker.place())}
    for (name, place), (other, there) in combinations(places.items(), 2):
        if place.is_same(there):
            raise ConfigError(f"{name} and {other} must be two folders, both are {place.resolved()}")
