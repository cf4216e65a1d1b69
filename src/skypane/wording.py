"""Format numbers, times and durations for people, in the same way in all outputs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from skypane.types import Micros

UNKNOWN = "n/a"
#: Bounds of Python's calendar, the years 1 to 9999 (half-open), and a mean year, in microseconds.
_FIRST, _END, _YEAR = -62_135_596_800_000_000, 253_402_300_800_000_000, 31_556_952_000_000


def count(number: int) -> str:
    """Return 336776 as "336,776"."""
    return f"{number:,}"


def counted(number: int, things: str) -> str:
    """Return "1 late row" or "2 late rows": for the number 1, the first plural in `things` becomes a singular."""
    if number != 1:
        return f"{count(number)} {things}"
    words = things.split(" ")
    at = next(position for position, word in enumerate(words) if word.endswith("s"))
    words[at] = words[at].removesuffix("es" if words[at].endswith("ches") else "s")
    return f"1 {' '.join(words)}"


def by_name(texts: Mapping[str, str]) -> str:
    """Return texts with their names in one line: "best: 1 %; load: 2 %"; one without a name as it is."""
    return "; ".join(f"{name}: {text}" if name else text for name, text in texts.items())


def size(number: int) -> str:
    """Return a number of bytes in its largest fitting unit: "3.2 GiB", "47.0 MiB", "512 bytes"."""
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if abs(number) >= scale:
            return f"{number / scale:,.1f} {unit}"
    return f"{number} bytes"


def percent(share: float | None) -> str:
    """Return 0.0123 as "1.23 %": at most two decimals, without trailing zeros."""
    if share is None:
        return UNKNOWN
    return f"{share * 100:.2f}".rstrip("0").rstrip(".") + " %"


def stamp(time: Micros | None) -> str:
    """Return an event time as "2013-01-01 05:15" (UTC, to the minute); outside Python's calendar, only the year."""
    if time is None:
        return UNKNOWN
    if not _FIRST <= time < _END:
        return f"the year {1970 + time // _YEAR:,}"
    return f"{datetime.fromtimestamp(time / 1e6, UTC):%Y-%m-%d %H:%M}"


def exact_stamp(time: Micros | None) -> str:
    """Return an event time as stamp() does, with its seconds and their fraction if it is not a whole minute."""
    if time is None or not _FIRST <= time < _END:
        return stamp(time)
    seconds, rest = divmod(time % 60_000_000, 1_000_000)
    fraction = f".{rest:06d}".rstrip("0") if rest else ""
    return stamp(time) + (f":{seconds:02d}{fraction}" if seconds or rest else "")


def span(length: Micros | None) -> str:
    """Return a duration in microseconds in its largest fitting unit: "3.2 h"."""
    return UNKNOWN if length is None else seconds(length / 1e6)


def seconds(value: float) -> str:
    """Return a number of seconds in its largest fitting unit: "0 s", "12 ms", "4.2 s", "3.5 min", "21.7 h", "12 d"."""
    size = abs(value)
    for unit, scale in (("d", 86400.0), ("h", 3600.0), ("min", 60.0), ("s", 1.0), ("ms", 1e-3)):
        # Days start at two days, so that a window of 24 h is printed as "24 h".
        if size >= scale * (2 if unit == "d" else 1):
            return f"{value / scale:.1f}".removesuffix(".0") + f" {unit}"
    return "0 s" if size == 0 else f"{value * 1e6:.0f} us"


def clock(elapsed: float) -> str:
    """Return elapsed seconds as "1:05", or "1:02:03" from an hour on."""
    minutes, secs = divmod(int(elapsed), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{secs:02d}" if hours else f"{minutes}:{secs:02d}"
