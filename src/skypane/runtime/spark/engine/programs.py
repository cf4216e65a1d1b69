"""Which program runs a plan."""

from __future__ import annotations

from typing import Any

from skypane.plan import ContinuousPlan
from skypane.runtime.spark.engine.continuous import ContinuousProgram
from skypane.runtime.spark.engine.crossing import Crossing
from skypane.runtime.spark.engine.intake import Intake
from skypane.runtime.spark.engine.program import Program
from skypane.runtime.spark.engine.setting import Setting
from skypane.runtime.spark.engine.windowed import WindowedProgram
from skypane.runtime.spark.store import Store


def program_of(setting: Setting, store: Store, staged: Store) -> Program[Any]:
    """Return the program of a setting's plan; partials are kept in `store`, and workers write answers to `staged`."""
    plan = setting.plan
    intake = Intake(plan, setting.schema, store, setting.late is not None, Crossing(setting.schema))
    if isinstance(plan, ContinuousPlan):
        return ContinuousProgram(plan, intake, setting.answer_schema, setting.costs)
    return WindowedProgram(plan, intake, setting.answer_schema, staged, setting.costs)
