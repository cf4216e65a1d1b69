"""Registry of the options for elastic=, one line each; the package, job files, errors and docs/reference.md read it.

The name of an option in job files is that of its class in lower case.
"""

from skypane.control.elasticity.options import Fuzzy as Fuzzy
from skypane.control.elasticity.options import Model as Model
from skypane.control.elasticity.options import Threshold as Threshold

_GROUP = "skypane.elasticity"
