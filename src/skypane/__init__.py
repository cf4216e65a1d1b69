"""Skyline, top-k and k-dominant queries over sliding windows, in batch and stream, on stock PySpark.

>>> import skypane as sp
>>> sp.low("price") * sp.high("rating")
low('price') * high('rating')

skyline, top_k, k_dominant, top_delta, aggregate and ask query a static DataFrame; stream returns a Job for a streaming
one. continuous_skyline emits every change of a front as it happens, skyline_history all of a static DataFrame.
docs/reference.md lists all names.
"""

from typing import TYPE_CHECKING

from skypane import lazy

if TYPE_CHECKING:
    from skypane.public import *
    from skypane.public import __version__ as __version__
else:
    __getattr__, __dir__ = lazy.package(__name__)
