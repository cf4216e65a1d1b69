"""Arguments that are true or false: a text is read as Spark reads it, or refused; nothing counts as true by being there."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import skypane as sp
from skypane.types import ConfigError

CALLS: dict[str, Callable[[Any], Any]] = {
    "TopK(largest)": lambda value: sp.TopK(1, "x", largest=value).largest,
    "Amend(changes)": lambda value: sp.Amend("1 day", changes=value).changes,
    "Watermark(behind)": lambda value: sp.Watermark("1 hour", behind=value).behind,
    "Readers(dry_run)": lambda value: sp.Readers(1, dry_run=value).dry_run,
    "Fuzzy(dry_run)": lambda value: sp.Fuzzy(dry_run=value).dry_run,
    "Model(dry_run)": lambda value: sp.Model(dry_run=value).dry_run,
    "Threshold(dry_run)": lambda value: sp.Threshold(dry_run=value).dry_run,
    "Directory(one_file)": lambda value: sp.Directory("out", one_file=value).one_file,
    "Kafka(tombstones)": lambda value: sp.Kafka("broker:9092", "answers", tombstones=value).tombstones,
}
ELSEWHERE = {
    "top_k(largest)",
    "inputs(align)",
    "BatchMetrics(exchange)",
    "StreamHandle(ends_by_itself)",
}
"""Arguments that become one of those, options of a source, whose texts are read by the same function, and what users do not set."""


def arguments() -> Iterator[str]:
    """Yield the arguments of public functions and classes that are true or false."""
    for name in dir(sp):
        try:
            parameters = inspect.signature(getattr(sp, name)).parameters.values()
        except (TypeError, ValueError):
            continue
        yield from (f"{name}({one.name})" for one in parameters if one.annotation in {"bool", bool})


def test_all_are_known():
    assert {*arguments()} == {*CALLS, *ELSEWHERE}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("value", [False, np.False_, "false", "False", "FALSE"])
def test_false_is_never_true(call: str, value: object):
    with suppress(ConfigError):
        assert CALLS[call](value) is False


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("value", ["no", "0", "", 0, 1, None, [], "yes"])
def test_what_is_neither_is_refused_by_its_name(call: str, value: object):
    with pytest.raises(ConfigError) as refused:
        CALLS[call](value)
    assert call.partition("(")[2].rstrip(")") in str(refused.value)
    assert f"got {value!r}" in str(refused.value)
