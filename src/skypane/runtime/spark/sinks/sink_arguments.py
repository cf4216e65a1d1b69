"""Sinks from the user's arguments `output` and `late`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import combinations

import pyarrow as pa

from skypane.plugins import Registered
from skypane.runtime.spark.sinks import registry
from skypane.runtime.spark.sinks.directory import Directory
from skypane.runtime.spark.sinks.function import Call
from skypane.runtime.spark.sinks.sink import Sink
from skypane.types import ConfigError


def sink(output: object, field: str = "output") -> Sink:
    """Return the sink for the user's argument `field`."""
    if isinstance(output, Sink) and not isinstance(output, type):
        return output
    if isinstance(output, (str, os.PathLike)):
        return Directory(os.fspath(output))
    if callable(output) and not isinstance(output, type):
        return Call(output)
    raise ConfigError(
        f"{field} must be a path, {', '.join(Registered(registry))}, or a function of (DataFrame, batch id), "
        f"got {output!r}"
    )


def sinks(output: object, late: object | None, answers: pa.Schema, rejected: pa.Schema) -> tuple[Sink, Sink | None]:
    """Return the sinks of answers and of rejected rows, which have these schemas; the latter is None without `late`.

    Raises ConfigError if a sink cannot hold its rows, or if both would write to the same folder under any spelling.
    """
    taker = sink(output)
    taker.check(answers)
    taker.place()
    if late is None:
        return taker, None
    other = sink(late, "late").for_rejected()
    other.check(rejected)
    apart({"output": taker, "late": other})
    return taker, other


def apart(takers: Mapping[str, Sink | None]) -> None:
    """Raise ConfigError, naming the arguments, if two sinks need the same folder under any spelling."""
    places = {name: place for name, taker in takers.items() if taker is not None and (place := taker.place())}
    for (name, place), (other, there) in combinations(places.items(), 2):
        if place.resolved() == there.resolved():
            raise ConfigError(f"{name} and {other} must be two folders, both are {place.resolved()}")
