"""The settings of a job: everything that the engine needs to run a plan on Spark."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from skypane.control.costs import DEFAULT_COSTS, Costs
from skypane.control.elasticity.elastic import Elastic
from skypane.control.lift_placement import LiftPlacement
from skypane.control.splitting import Splitting
from skypane.operators.entry.raw_text import sent
from skypane.plan import Plan
from skypane.runtime.spark.engine import late_rows
from skypane.runtime.spark.sinks.shared_sinks import SharedSinks
from skypane.runtime.spark.sinks.sink_arguments import Sinks
from skypane.shared_plan import SharedPlan


@dataclass(frozen=True)
class JobSettings:
    """A plan, of one query or of several that share the stream, and everything needed to run it on Spark.

    schema     schema of the rows
    splitting  policy that routes rows if they are exchanged; None: the fastest one, for each batch
    elastic    policy that changes the numbers of workers; None: only scale() changes them
    limits     whether the job sets the number of tasks that lift, which is then their maximum
    follows    whether executors follow the numbers of workers
    columns    schema of the rows with the columns that nobody reads, too; an earlier query may read more than the plan,
               and late rows keep their raw text
    lift       policy that lets the driver lift batches of few rows
    """

    plan: Plan | SharedPlan
    schema: pa.Schema
    checkpoint: str
    sinks: Sinks | SharedSinks
    splitting: Splitting | None
    costs: Costs = DEFAULT_COSTS
    elastic: Elastic | None = None
    limits: bool = False
    follows: bool = False
    columns: pa.Schema | None = None
    lift: LiftPlacement = field(default_factory=LiftPlacement)

    @property
    def added(self) -> pa.Schema | None:
        """The columns that rejected rows get, for the late sink; None without one."""
        return None if self.sinks.late is None else late_rows.added(self.rows)

    @property
    def arriving(self) -> pa.Schema:
        """The schema of the rows, with the columns that only late rows keep."""
        more = () if self.sinks.late is None else sent(self.rows)
        return pa.schema([*self.schema, *(self.rows.field(name) for name in more)])

    @property
    def rows(self) -> pa.Schema:
        """The schema of all columns that the job's rows have."""
        return self.schema if self.columns is None else self.columns
