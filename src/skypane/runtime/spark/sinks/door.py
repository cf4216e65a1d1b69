"""The sinks that a user's `output` and `late` stand for."""

from __future__ import annotations

import os

import pyarrow as pa

from skypane.runtime.spark.sinks.call import Call
from skypane.runtime.spark.sinks.directory import Directory
from skypane.runtime.spark.sinks.sink import Sink
from skypane.types import ConfigError


def sink(output: object, field: str = "output") -> Sink:
    """Return the sink that a user's argument `field` means."""
    if isinstance(output, Sink) and not isinstance(output, type):
        return output
    if isinstance(output, (str, os.PathLike)):
        return Directory(os.fspath(output))
    if callable(output) and not isinstance(output, type):
        return Call(output)
    raise ConfigError(
        f"{field} must be a path, Directory, Console(), Memory(), or a function of (DataFrame, batch id), got {output!r}"
    )


def sinks(output: object, late: object | None, answers: pa.Schema, rejected: pa.Schema) -> tuple[Sink, Sink | None]:
    """Return where rows of the schema `answers` and rows of the schema `rejected` go; the latter nowhere if `late` is None.

    Raises ConfigError if a sink cannot hold its rows, or if both would write into one folder, however it is written.
    """
    taker = sink(output)
    taker.check(answers)
    place = taker.place()
    if late is None:
        return taker, None
    other = sink(late, "late").for_rejected()
    other.check(rejected)
    there = other.place()
    if place is not None and there is not None and place.resolved() == there.resolved():
        raise ConfigError(f"output and late must be two folders, both are {place.resolved()}")
    return taker, other
