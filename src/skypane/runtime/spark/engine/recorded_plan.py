"""The plan of a query as its checkpoint records it, made runnable again from the plan of a job.

fixed   Plan.definition(): queries, windows, columns, and the kind of the policy
rules   Plan.rules: the numbers of the policy, and the rest from which answers follow
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from skypane.operators.aggregates.spark_having import SparkHaving, of_workers
from skypane.operators.amendments import AmendRule
from skypane.operators.changes.recorded_query import query_of
from skypane.plan import Plan
from skypane.progress import ProgressPolicy
from skypane.shared_plan import SharedPlan
from skypane.snapshots import through_json
from skypane.types import ConfigError
from skypane.windows import Windows


def plan_of(
    fixed: Mapping[str, Any], rules: Mapping[str, Any], plan: Plan | SharedPlan, rows: pa.Schema
) -> tuple[Plan | SharedPlan, pa.Schema]:
    """Return a recorded plan, and the schema of the rows that it reads; code of a user's own is that of `plan`.

    rows   schema of all columns that the job's rows have

    Raises ConfigError, with the reason, if it cannot be made.
    """
    try:
        common = _common(rules, plan.progress) | {"time": fixed["time"], "source": fixed["source"]}
        made: Plan | SharedPlan
        if isinstance(plan, SharedPlan):
            first = next(iter(plan.plans.values()))
            named = fixed["queries"].items()
            made = SharedPlan({name: query_plan(one, plan.plans.get(name, first), common) for name, one in named})
        else:
            made = query_plan(fixed, plan, common)
    except KeyError as error:
        raise ConfigError(f"its record has no {error}, which later versions of skypane write") from error
    schema = columns_of(fixed, fixed["column order"], rows)
    made.validate(schema)
    if through_json(made.definition(schema)) != fixed or through_json(made.rules) != rules:
        raise ConfigError("it cannot be made from its record")
    return made, schema


def query_plan(recorded: Mapping[str, Any], plan: Plan, common: Mapping[str, Any]) -> Plan:
    """Return the plan of one recorded query: `plan`, with the values that are recorded or in `common`."""
    having, described = SparkHaving.recorded(recorded["query"]), of_workers(recorded["query"])
    if having is not None and having == plan.having:
        having = plan.having
    elif having is not None and having.shown:
        raise ConfigError(f"its having= is a Spark Column, {having.text}, which only its own program has")
    same = through_json(plan.query.describe()) == described
    query = plan.query if same else query_of(described, plan.query)
    return replace(plan, query=query, windows=Windows(**recorded["window"]), having=having, **common)


def _common(rules: Mapping[str, Any], policy: ProgressPolicy) -> dict[str, Any]:
    recorded = rules["rules"]
    amend = None if recorded["amend"] is None else AmendRule(**recorded["amend"])
    values = {"amend": amend, "early": recorded["early"], "answers": recorded["answers"]}
    return values | {"computed": tuple(recorded["computed"]), "progress": _policy_of(rules["progress"], policy)}


def _policy_of(recorded: Mapping[str, Any], policy: ProgressPolicy) -> ProgressPolicy:
    """Return the policy that describe() recorded, of the class of `policy`."""
    if through_json(policy.describe()) == recorded:
        return policy
    try:
        return type(policy).described(recorded)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"its policy, {recorded}, cannot be made: {error}") from error


def columns_of(definition: Mapping[str, Any], names: Iterable[str], rows: pa.Schema) -> pa.Schema:
    """Return the schema of these columns of a recorded query, taken from those of the job's rows."""
    for name in names:
        recorded, kind = definition["columns"][name], str(rows.field(name).type) if name in rows.names else None
        if kind != recorded:
            found = "is gone" if kind is None else f"is {kind!r}"
            raise ConfigError(f"it reads the column {name!r} of type {recorded!r}, which {found}")
    return pa.schema([rows.field(name) for name in names])
