"""What a user may write as elastic=, a line each: the package, job files, errors and docs/reference.md have it from here.

It is called in job files as its class is, in small letters.
"""

from skypane.control.elasticity.options import Fuzzy as Fuzzy
from skypane.control.elasticity.options import Model as Model
from skypane.control.elasticity.options import Threshold as Threshold
