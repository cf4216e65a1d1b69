"""Times as texts: those without a zone are in the session's zone, as Spark reads them; digits beyond microseconds are cut off."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

from skypane.types import ConfigError

UTC: Final = "UTC"

_LATE: Final = datetime(2037, 1, 1)  # noqa: DTZ001 - of each zone
"""From when on Arrow forgets the rules by which a zone's clocks change."""

_ZONE = r"[T ].*(Z|[+-]\d\d(:?\d\d)?)$"
"""A time of day that ends with a zone; a date alone ends as an offset does."""
_OFFSET = re.compile(r"^(GMT|UTC|UT)(?=[+-]\d\d:\d\d$)")
FINE: Final = r"(\.\d{6})\d+"
"""Digits of a second beyond microseconds."""


_ALSO_UTC: Final = frozenset(
    {"Z", "GMT", "UCT", "Zulu", "Universal", "Etc/UTC", "Etc/GMT", "Etc/UCT", "GMT0", "+00:00"}
)


def zone_of_session(zone: str) -> str:
    """Return a session's zone as Arrow knows it; raise ConfigError for one that it does not know."""
    if zone in _ALSO_UTC:
        return UTC
    zone = _OFFSET.sub("", zone)
    try:
        in_zone(pa.chunked_array([pa.array([0], pa.timestamp("us"))]), zone)
    except pa.ArrowInvalid as error:
        raise ConfigError(
            f"spark.sql.session.timeZone is {zone!r}, in which times without a zone cannot be read: set it to a region such "
            f"as Europe/Berlin, or to an offset such as +01:00 ({error})"
        ) from None
    return zone


def zone_for(columns: pa.Schema, zone: str) -> str:
    """Return a session's zone for reading columns, UTC if none of them has times; raise ConfigError if Arrow does not know it."""
    return zone_of_session(zone) if any("timestamp" in str(one.type) for one in columns) else UTC


def times_of(texts: pa.ChunkedArray, kind: pa.TimestampType, zone: str) -> pa.ChunkedArray:
    """Return texts in ISO 8601 as times of a type in microseconds; raise pa.ArrowInvalid for another text."""
    with suppress(pa.ArrowInvalid):
        return texts.cast(kind)  # the usual case
    cut = pc.replace_substring_regex(texts, FINE, r"\1")
    if kind.tz is None:
        return cut.cast(kind)
    zoned = pc.match_substring_regex(cut, _ZONE)
    nothing = pa.scalar(None, pa.string())
    instants = pc.if_else(zoned, cut, nothing).cast(kind)
    if pc.all(zoned).as_py() is not False:
        return instants
    local = pc.if_else(zoned, nothing, cut).cast(pa.timestamp(kind.unit))
    return pc.coalesce(instants, in_zone(local, zone).cast(kind))


def in_zone(local: pa.ChunkedArray, zone: str) -> pa.ChunkedArray:
    """Return local times as instants, as Java does: the first of two, and what a clock skips as by the offset before it."""
    found = pc.assume_timezone(local, zone, ambiguous="earliest", nonexistent="earliest")
    shown = pc.local_timestamp(found)
    offset = pc.subtract(shown.cast(pa.int64()), found.cast(pa.int64()))
    late = pc.greater_equal(local, pa.scalar(_LATE, local.type))
    if pc.any(late).as_py() and zone[0] not in "+-":
        offset = pa.chunked_array([[_offset(time, zone) if is_late else known for time, is_late, known in
                                    zip(local.to_pylist(), late.to_pylist(), offset.to_pylist(), strict=True)]], pa.int64())  # fmt: skip
    return pc.subtract(local.cast(pa.int64()), offset).cast(pa.timestamp(local.type.unit, UTC))


def _offset(local: datetime, zone: str) -> int:
    """Return the offset of a zone in microseconds."""
    offset = local.replace(tzinfo=ZoneInfo(zone)).utcoffset()
    assert offset is not None  # noqa: S101 - as every zone has
    return offset // timedelta(microseconds=1)
