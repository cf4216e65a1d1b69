"""Which reader reads which streams (paper 3, section 2): many, each with its own rate, that come and go.

metadata.py       what is known of a stream beforehand: ten characteristics, and defaults
forecasting.py    Holt's linear trend, fitted to each stream; another forecaster fits in
expectation.py    the rate that meta-data lets expect, which overrides the forecast
strategies.py     the four questions of Algorithm 1: PAR, ARI, ARD, DRF, DRF-M
packing.py        best fit, and the fewest bins that there can be
placement.py      Algorithm 1
admission.py      all of it as a law of control
sharing.py        a budget of rows, shared fairly
"""

from skypane.control.admission.admission import Admission, AdmissionState, Seen
from skypane.control.admission.metadata import MetaData
from skypane.control.admission.placement import Assignment, Move
from skypane.control.admission.strategies import STRATEGIES

__all__ = ["STRATEGIES", "Admission", "AdmissionState", "Assignment", "MetaData", "Move", "Seen"]
