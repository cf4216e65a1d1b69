"""The schemas of the rows that a job's sinks receive."""

from __future__ import annotations

import pyarrow as pa

from skypane.plan import Plan
from skypane.runtime.spark.engine import late_rows
from skypane.runtime.spark.engine.shared_program import rejected_schema
from skypane.runtime.spark.sinks.shared_sinks import output_of
from skypane.shared_plan import SharedPlan


def sent(plan: Plan | SharedPlan, schema: pa.Schema, added: pa.Schema | None = None) -> dict[str, pa.Schema]:
    """Return the schemas of the rows that sinks receive, by the role of the sink, for rows of `schema`.

    added   the columns that late rows get; None: the reason alone
    """
    added = late_rows.added(schema) if added is None else added
    if isinstance(plan, SharedPlan):
        answers = {output_of(name): one for name, one in plan.answer_schemas(schema).items()}
        return answers | {"late": rejected_schema(schema, added)}
    return {"output": plan.output_schema(schema), "late": late_rows.schema_of(schema, added), "front": schema}
