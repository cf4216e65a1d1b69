"""The policies of progress there are, a line each: the package, job files, errors and docs/reference.md have them from here.

A policy is called in job files as its class is, in small letters.
"""

from skypane.progress.aqkslack import AqKSlack as AqKSlack
from skypane.progress.kslack import KSlack as KSlack
from skypane.progress.readiness import Readiness as Readiness
from skypane.progress.watermark import Watermark as Watermark
