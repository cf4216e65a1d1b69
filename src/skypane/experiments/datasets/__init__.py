"""Readers for the layouts of the field's data sets: lines of text to Arrow tables with an event time and a source."""

from skypane.experiments.datasets.cabs import CABS
from skypane.experiments.datasets.layout import Field, Layout, Reading
from skypane.experiments.datasets.lines import read, read_all
from skypane.experiments.datasets.meters import meters
from skypane.experiments.datasets.rates import RATES, counts
from skypane.experiments.datasets.sensorscope import SENSORSCOPE
from skypane.experiments.datasets.soccer import SOCCER

LAYOUTS = {"soccer": SOCCER, "sensorscope": SENSORSCOPE, "cabs": CABS, "meters": meters(), "rates": RATES}

__all__ = [
    "CABS",
    "LAYOUTS",
    "RATES",
    "SENSORSCOPE",
    "SOCCER",
    "Field",
    "Layout",
    "Reading",
    "counts",
    "meters",
    "read",
    "read_all",
]
