"""Readers for the layouts of the field's data sets: lines of text to Arrow tables with an event time and a source."""

from skypane.datasets.cabs import CABS
from skypane.datasets.layout import Field, LineLayout, Reading
from skypane.datasets.lines import read, read_all
from skypane.datasets.meters import meters
from skypane.datasets.rates import RATES, counts
from skypane.datasets.sensorscope import SENSORSCOPE
from skypane.datasets.soccer import SOCCER

LAYOUTS = {"soccer": SOCCER, "sensorscope": SENSORSCOPE, "cabs": CABS, "meters": meters(), "rates": RATES}

__all__ = [
    "CABS",
    "LAYOUTS",
    "RATES",
    "SENSORSCOPE",
    "SOCCER",
    "Field",
    "LineLayout",
    "Reading",
    "counts",
    "meters",
    "read",
    "read_all",
]
