"""A test kit for what you write yourself: the laws that the runtime relies on, tried on what you give them.

    check_query(MyQuery("city"), rows)                          a query
    check_policy(MyPolicy("10 s"))                              a policy of progress
    check_law(MyLaw(), measured=[...], known=[...])             a law of control
    check_elasticity(MyElasticity(max_workers=8))               what counts workers: elastic=
    check_sink(spark, MySink, read, folder)                     a sink
    check_source(spark, MySource, {"path": "..."}, folder)      a streaming source

Each raises AssertionError that names the law which was broken, and what it was broken on. docs/extending.md has a whole
program for each.
"""

from skypane.testing.laws import check_elasticity, check_law
from skypane.testing.policies import check_policy
from skypane.testing.queries import check_query, same_rows
from skypane.testing.sinks import check_sink
from skypane.testing.sources import check_source

__all__ = [
    "check_elasticity",
    "check_law",
    "check_policy",
    "check_query",
    "check_sink",
    "check_source",
    "same_rows",
]
