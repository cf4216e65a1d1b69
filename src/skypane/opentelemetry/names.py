"""The names and units of measures in OpenTelemetry.

A name of Prometheus has the unit as a suffix, and `_total` for what is only added up. In OpenTelemetry the unit is beside
the name, by UCUM, and its exporters to Prometheus make the suffixes again. `_ratio` stays: not all exporters add it.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from skypane.monitoring.measures import Measure

SCOPE: Final = "skypane"
"""The name of the meter, and the first part of all names."""

SECONDS: Final = "s"
BYTES: Final = "By"

UNITS: Final = {
    "s": SECONDS,
    "time in s": SECONDS,
    "s of event time": SECONDS,
    "event time in s": SECONDS,
    "bytes": BYTES,
    "ratio": "1",
    "0 or 1": "",
    "batches": "{batch}",
    "executors": "{executor}",
    "inputs": "{input}",
    "number": "",
    "panes": "{pane}",
    "rows": "{row}",
    "updates": "{update}",
    "windows": "{window}",
    "workers": "{worker}",
}
"""Units of measures, in UCUM; what is counted is an annotation, which a name of Prometheus does not have."""

_SUFFIXES: Final = {SECONDS: "_seconds", BYTES: "_bytes"}


class Described(NamedTuple):
    """The name and the unit of an instrument."""

    name: str
    unit: str


def described(measure: Measure[Any]) -> Described:
    """Return the name and the unit of a measure's instrument.

    >>> from skypane.monitoring.measures import OF_QUERIES
    >>> described(next(one for one in OF_QUERIES if one.name == "skypane_late_rows_total"))
    Described(name='skypane.late_rows', unit='{row}')
    """
    unit = UNITS[measure.unit]
    name = measure.name.removeprefix(f"{SCOPE}_").removesuffix("_total").removesuffix(_SUFFIXES.get(unit, ""))
    return Described(f"{SCOPE}.{name}", unit)
