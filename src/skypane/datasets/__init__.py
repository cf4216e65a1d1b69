"""Readers for public data sets of the field: they turn lines of text into Arrow tables with event time and source."""

from skypane.datasets.cab_traces import CABS
from skypane.datasets.line_reader import read, read_all
from skypane.datasets.meter_readings import meters
from skypane.datasets.rate_traces import RATES, counts
from skypane.datasets.sensorscope import SENSORSCOPE
from skypane.datasets.soccer import SOCCER
from skypane.datasets.text_layout import LineField, LineLayout, ParsedRows

LAYOUTS = {"soccer": SOCCER, "sensorscope": SENSORSCOPE, "cabs": CABS, "meters": meters(), "rates": RATES}

__all__ = [
    "CABS",
    "LAYOUTS",
    "RATES",
    "SENSORSCOPE",
    "SOCCER",
    "LineField",
    "LineLayout",
    "ParsedRows",
    "counts",
    "meters",
    "read",
    "read_all",
]
