"""Test kits for your own extensions: each checks the laws that the runtime relies on.

    check_query(MyQuery("city"), rows)                          a query
    check_policy(MyPolicy(), measured=[...], known=[...])       a policy of any kind: of control, for example
    check_progress_policy(MyProgress("10 s"))                   a progress policy
    check_elasticity(MyElasticity(max_workers=8))               an elasticity policy: elastic=
    check_sink(spark, MySink, read, folder)                     a sink
    check_source(spark, MySource, {"path": "..."}, folder)      a streaming source

    Session().stream(batches)                                   a stream without Java, for sp.stream: docs/how-to-test-a-job.md
    killed(run, at=17)                                          a driver that is killed at an operation on a file

Each check raises AssertionError, which names the broken law and the input that breaks it. docs/extending.md has a complete
program for each.
"""

from skypane.testing.elasticity_kit import check_elasticity
from skypane.testing.kills import killed
from skypane.testing.policy_kit import check_policy
from skypane.testing.progress_kit import check_progress_policy
from skypane.testing.query_kit import check_query, same_rows
from skypane.testing.sink_kit import check_sink
from skypane.testing.source_kit import check_source
from skypane.testing.without_java import Session

__all__ = [
    "Session",
    "check_elasticity",
    "check_policy",
    "check_progress_policy",
    "check_query",
    "check_sink",
    "check_source",
    "killed",
    "same_rows",
]
