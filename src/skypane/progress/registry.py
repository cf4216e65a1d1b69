"""Registry of the progress policies, one line each; the package, job files, errors and docs/reference.md read it.

The name of a policy in job files is that of its class in lower case.
"""

from skypane.progress.aqkslack import AqKSlack as AqKSlack
from skypane.progress.kslack import KSlack as KSlack
from skypane.progress.readiness import Readiness as Readiness
from skypane.progress.watermark import Watermark as Watermark

_GROUP = "skypane.progress"
