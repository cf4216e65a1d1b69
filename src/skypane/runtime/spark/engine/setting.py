"""All that is needed to run a plan on Spark."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from skypane.control.costs import DEFAULT_COSTS, Costs
from skypane.control.elasticity.elastic import Elastic
from skypane.control.splitting import Splitting
from skypane.plan import Plan
from skypane.runtime.spark.sinks.sink import Sink


@dataclass(frozen=True)
class Setting:
    """A plan and all that is needed to run it on Spark; `schema` is that of the rows that come.

    elastic   what changes the numbers of workers; None: nobody but scale()
    limits    whether the job says how many tasks lift, so that there are no more of them
    """

    plan: Plan
    schema: pa.Schema
    answer_schema: pa.Schema
    checkpoint: str
    output: Sink
    late: Sink | None
    splitting: Splitting
    costs: Costs = DEFAULT_COSTS
    elastic: Elastic | None = None
    limits: bool = False
    #: where the current front of a continuous skyline is kept
    front: Sink | None = None

    @property
    def sinks(self) -> dict[str, Sink]:
        """The sinks by the name of the option that names them."""
        named = {"output": self.output, "late": self.late, "front": self.front}
        return {role: sink for role, sink in named.items() if sink is not None}
