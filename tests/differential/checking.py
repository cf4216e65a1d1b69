"""One case, tried: each of its ways is held against the definition, and the ways against one another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tests.differential import peer
from tests.differential.accounts import stream_differs
from tests.differential.case import Case
from tests.differential.compare import difference, same_answers
from tests.differential.expected import Expected, Refused, Values, expected
from tests.differential.laws import LAWS
from tests.differential.ways.continuous import CONTINUOUS
from tests.differential.ways.streams import STREAMS
from tests.differential.ways.windowed import WINDOWED

from skypane.types import BadInputError

WAYS: Mapping[str, Mapping[str, Callable[[Case], Any]]] = {"continuous": CONTINUOUS, "progress": STREAMS}
"""By kind of case; of others, WINDOWED."""


@dataclass(frozen=True)
class Failure:
    """A case, the way or law that fails on it, and what differs."""

    case: Case
    way: str
    what: str

    def __str__(self) -> str:
        """The failure in one paragraph."""
        return f"seed {self.case.seed}, by {self.way}: {self.what}. {self.case}"


def failure_of(case: Case) -> Failure | None:
    """Return the first failure of a case, or None."""
    if case.kind == "progress":
        return _stream_failure(case)
    wanted = expected(case)
    found: dict[str, Any] = {}
    for way in case.ways:
        what = _wrong(case, way, wanted, found)
        if what is not None:
            return Failure(replace(case, ways=(way,)), way, what)
    return _bits_differ(case, wanted, found)


def _wrong(case: Case, way: str, wanted: Expected, found: dict[str, Any]) -> str | None:
    """Return what is wrong with a way's answer, which is noted as `found`, or with a law; whatever is raised is wrong, too."""
    try:
        if way in LAWS:
            return _broken(case, way)
        if way == "duckdb":
            return peer.difference(case, wanted) if isinstance(wanted, Values) else None
        found[way] = _answer(case, way)
        return difference(case, wanted, found[way])
    except Exception as error:  # noqa: BLE001 - any error is wrong
        return f"{type(error).__name__}: {error}"


def _broken(case: Case, law: str) -> str | None:
    """Return in which way a law does not hold, with one way to answer, by chance."""
    ways = sorted(WAYS.get(case.kind, WINDOWED))
    way = str(case.rng(10).choice(ways))
    what = LAWS[law](case, lambda other: _answer(other, way))
    return None if what is None else f"{what} (by {way})"


def _stream_failure(case: Case) -> Failure | None:
    """Return the failure of a stream: its answers must be those to the rows that entered, and no row may be missed."""
    for way in case.ways:
        try:
            what = _broken(case, way) if way in LAWS else _stream_differs(case, _answer(case, way))
        except Exception as error:  # noqa: BLE001 - as above
            what = f"{type(error).__name__}: {error}"
        if what is not None:
            return Failure(replace(case, ways=(way,)), way, what)
    return None


def _stream_differs(case: Case, run: Any) -> str | None:
    return None if isinstance(run, Refused) else stream_differs(case, run.answers, run.rejected)


def _answer(case: Case, way: str) -> Any:
    try:
        return WAYS.get(case.kind, WINDOWED)[way](case)
    except BadInputError as error:
        return Refused(str(error))


def _bits_differ(case: Case, wanted: Expected, found: dict[str, Any]) -> Failure | None:
    """Return the failure that two ways differ, where the definition leaves the last bits open."""
    if not isinstance(wanted, Values) or not found:
        return None
    first, *others = found
    for way in others:
        if not same_answers(found[first], found[way]):
            return Failure(case, f"{first} and {way}", "their answers are not the same to the bit")
    return None
