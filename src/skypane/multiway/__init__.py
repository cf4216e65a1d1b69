"""Many feeds in one process, each in order of its times, merged into one order that does not depend on arrival.

ReadyMerge   merges rows of any kind, by columns
Feeds        answers a query over windows of the merged rows

Nothing here starts Spark, a thread or a process.
"""

from typing import TYPE_CHECKING

from skypane import lazy

if TYPE_CHECKING:
    from skypane.multiway.public import *  # noqa: F403 - public names and nothing else
else:
    __getattr__, __dir__ = lazy.package(__name__)
