"""When rows happen, in which order they come, how they are cut into batches, and which windows are computed over them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from tests.differential.case import IntArray, Windows

Rng = np.random.Generator

PARTS = 12
"""Parts of a stream that may change places."""

_UNITS = (1, 1, 10, 1_000, 1_000_000, 60_000_000)
_BASES = (0, 0, -1_000, 1_700_000_000_000_000, -6_000_000_000_000_000)


class Coming(NamedTuple):
    """Rows in order of time, and how they come."""

    times: IntArray  # (n,) ascending, microseconds
    arrival: IntArray  # (n,) which row comes first, second, ...
    lag: int  # how far a row may lie behind the newest before it, unless rows are unruly
    in_parts: bool = False  # whether parts of the stream have changed places


def coming(rng: Rng, n: int) -> Coming:
    """Return times with ties, pauses and bursts, and an order of arrival: in order, nearly so, or with stragglers."""
    unit = int(rng.choice(_UNITS))
    style = rng.integers(5)
    if style == 0:
        gaps = np.ones(n, np.int64)
    elif style == 1:
        gaps = rng.integers(0, 4, n)
    elif style == 2:
        gaps = np.where(rng.random(n) < 0.8, 0, rng.integers(1, 9, n))
    elif style == 3:
        gaps = np.where(rng.random(n) < 0.05, rng.integers(1, 200, n), rng.integers(0, 2, n))
    else:
        gaps = rng.geometric(0.3, n)
    times = int(rng.choice(_BASES)) + np.cumsum(gaps) * unit + (rng.integers(0, unit, n) if rng.random() < 0.3 else 0)
    times = np.sort(times).astype(np.int64)
    arrival = np.argsort(times + _delays(rng, n, max(1, int(np.ptp(times)) if n else 1)), kind="stable")
    newest = np.maximum.accumulate(times[arrival]) if n else times
    return Coming(times, arrival, int((newest - times[arrival]).max(initial=0)))


def unruly(rng: Rng, how: Coming) -> Coming:
    """Return rows that give a policy something to decide: after a pause, in parts that change places, of clocks far ahead."""
    n = len(how.times)
    if n < 4:
        return how
    span = max(1, int(np.ptp(how.times)))
    if rng.random() < 0.4:
        how.times[int(rng.integers(1, n)) :] += max(1, span // 4) * int(rng.choice([1, 4, 40]))
    if n >= 2 * PARTS and rng.random() < 0.4:
        part = np.arange(n) * PARTS // n
        return how._replace(arrival=np.argsort(_turns(rng)[part], kind="stable"), in_parts=True)
    return _with_wrong_clocks(rng, how, span) if rng.random() < 0.3 else how


def _turns(rng: Rng) -> IntArray:
    """Return when each part comes: in any order; or several turned around, then the next ones, so that delays repeat."""
    if rng.random() < 0.3:
        return rng.permutation(PARTS)
    several, part = int(rng.integers(2, 5)), np.arange(PARTS)
    return part - 2 * (part % several)


def _with_wrong_clocks(rng: Rng, how: Coming, span: int) -> Coming:
    """Return rows of which the last ones are of times far ahead, and come at any time."""
    n = len(how.times)
    wrong = int(rng.integers(1, min(n // 2, 40) + 1))
    how.times[-wrong:] += span * int(rng.choice([1, 3, 30]))
    place = np.empty(n)
    place[how.arrival] = np.arange(n)
    place[-wrong:] = rng.uniform(0, n, wrong)
    return how._replace(arrival=np.argsort(place, kind="stable"))


def by_sources(rng: Rng, when: IntArray, sources: IntArray) -> IntArray:
    """Return an order of arrival in which each source sends in order of time, some of them long after others."""
    span = max(1, int(np.ptp(when)) if len(when) else 1)
    return np.argsort(when + rng.integers(0, 2 * span, 3)[sources], kind="stable")


def _delays(rng: Rng, n: int, span: int) -> IntArray:
    style = rng.integers(4)
    if style == 0:
        return np.zeros(n, np.int64)
    if style == 1:
        return rng.integers(0, max(2, span // 20), n)
    if style == 2:
        return rng.integers(0, span + 1, n)
    return np.where(rng.random(n) < 0.05, rng.integers(0, span + 1, n), 0)


def batches(rng: Rng, n: int) -> IntArray:
    """Return the batch of each of n rows: all in one, one each, or cut at random, with empty ones."""
    style = rng.integers(4)
    if style == 0:
        return np.zeros(n, np.int64)
    if style == 1 and n <= 24:
        return np.arange(n) + int(rng.integers(0, 2))
    count = int(rng.integers(1, 9 if n <= 5_000 else 25))
    return np.sort(rng.integers(0, count + 1, n)).astype(np.int64)


def stretches(when: IntArray) -> IntArray:
    """Return the batch of each row, by their times as they come: one begins where time leaps, back or on."""
    leap = np.abs(np.diff(when, prepend=when[:1]))
    return np.cumsum(leap > max(1, int(np.ptp(when)) // PARTS if len(when) else 1)).astype(np.int64)


def windows(rng: Rng, times: IntArray, most: int) -> Windows:
    """Return windows of which at most about `most` hold rows: short or longer than the stream, the slide dividing them or not."""
    span = max(1, int(np.ptp(times)) if len(times) else 1)
    length = max(1, int(span * rng.choice([0.0, 0.02, 0.1, 0.3, 0.5, 2.1])) + int(rng.integers(-1, 3)))
    slide = (
        length // int(rng.choice([1, 1, 2, 3, 5, 12, 100])) if rng.random() < 0.6 else int(rng.integers(1, length + 1))
    )
    slide = max(1, slide)
    while _count(times, length, slide) > most and slide < 2 * span:
        length = length * 3 if slide == length else length
        slide = min(length, 2 * slide + int(rng.integers(0, 2)))
    offset = int(rng.choice([0, 0, 1, -slide // 3, slide // 2, -(10**12), 10**12 + 7]))
    return Windows(length, slide, offset)


def _count(times: IntArray, length: int, slide: int) -> int:
    """Return about how many windows hold a row, no fewer."""
    if not len(times):
        return 0
    overlap = -(-length // slide)
    return min(len(np.unique(times // slide)) * overlap, int(np.ptp(times)) // slide + 1 + overlap)
