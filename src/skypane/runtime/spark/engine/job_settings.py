"""The settings of a job: everything that the engine needs to run a plan on Spark."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from skypane.control.costs import DEFAULT_COSTS, Costs
from skypane.control.elasticity.elastic import Elastic
from skypane.control.splitting import Splitting
from skypane.plan import Plan
from skypane.runtime.spark.sinks.sink_arguments import Sinks


@dataclass(frozen=True)
class JobSettings:
    """A plan and everything needed to run it on Spark.

    schema    schema of the rows
    elastic   policy that changes the numbers of workers; None: only scale() changes them
    limits    whether the job sets the number of tasks that lift, which is then their maximum
    """

    plan: Plan
    schema: pa.Schema
    answer_schema: pa.Schema
    checkpoint: str
    sinks: Sinks
    splitting: Splitting
    costs: Costs = DEFAULT_COSTS
    elastic: Elastic | None = None
    limits: bool = False
