"""Assignment of many streams to readers (paper 3, section 2); streams have their own rates, and come and go.

metadata.py       meta-data of a stream: ten characteristics, and their defaults
forecasting.py    Holt's linear trend, fitted to each stream; the interface of forecasters
rate_changes.py   changes of a rate at known times, as part of the meta-data
expectation.py    the rate expected from meta-data, which overrides the forecast
ahead.py          the rate of all inputs within a lead time, for which readers and workers start beforehand
strategies.py     the four decisions of Algorithm 1 in PAR, ARI, ARD, DRF and DRF-M
packing.py        best fit, and a lower bound of the number of bins
assignment.py     Algorithm 1
admission.py      the control policy that combines them
sharing.py        fair shares of a budget of rows
"""

from skypane.control.admission.admission import Admission, AdmissionState, PeriodObservation
from skypane.control.admission.assignment import Assignment, StreamMove
from skypane.control.admission.metadata import MetaData
from skypane.control.admission.strategies import STRATEGIES

__all__ = ["STRATEGIES", "Admission", "AdmissionState", "Assignment", "MetaData", "PeriodObservation", "StreamMove"]
