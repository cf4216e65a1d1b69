"""The choice of the program that runs a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from skypane.operators.changes.comparison import QueryChange
from skypane.plan import ContinuousPlan
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine.arrow_transfer import ArrowTransfer
from skypane.runtime.spark.engine.begun_batch import columns_of_begun
from skypane.runtime.spark.engine.front_program import ContinuousProgram
from skypane.runtime.spark.engine.handover import RECORD, Handover
from skypane.runtime.spark.engine.handover_program import HandoverProgram
from skypane.runtime.spark.engine.ingest import Ingest
from skypane.runtime.spark.engine.job_settings import JobSettings
from skypane.runtime.spark.engine.ledger import Manifest
from skypane.runtime.spark.engine.program import Program
from skypane.runtime.spark.engine.query_changes import beginning
from skypane.runtime.spark.engine.shared_program import SharedProgram
from skypane.runtime.spark.engine.window_program import WindowedProgram
from skypane.runtime.spark.sinks.shared_sinks import output_of
from skypane.shared_plan import SharedPlan


def program_of(settings: JobSettings, store: DocumentStore, staged: Callable[[str], DocumentStore]) -> Program[Any]:
    """Return the program of a job's plan.

    store    folder of the partials
    staged   returns the folder to which workers write answers for the sink of a role
    """
    plan, schema, arriving, added = settings.plan, settings.schema, settings.arriving, settings.added
    if isinstance(plan, SharedPlan):
        return SharedProgram(plan, schema, arriving, store, added, lambda name: staged(output_of(name)))
    intake, answers = Ingest(plan, schema, store, added, ArrowTransfer(arriving)), plan.output_schema(schema)
    if isinstance(plan, ContinuousPlan):
        return ContinuousProgram(plan, intake, answers)
    return WindowedProgram(plan, intake, answers, staged("output"))


def columns_of_start(
    settings: JobSettings,
    store: DocumentStore,
    change: QueryChange,
    latest: Manifest | None,
    staged: Callable[[str], DocumentStore],
) -> tuple[str, ...] | None:
    """Return the columns that the rows of a start need, if an earlier query reads others than the job; None: those of the job."""
    since = beginning(change, latest, settings.plan)
    both = None if since is None else taking_over(settings, store, since.operator, staged)
    return columns_of_begun(DocumentStore.at(settings.checkpoint), settings, latest) if both is None else both.columns


def taking_over(
    settings: JobSettings, store: DocumentStore, operator: Mapping[str, Any], staged: Callable[[str], DocumentStore]
) -> HandoverProgram | None:
    """Return the program that also runs the earlier query of a manifest's operator; None if that has no earlier one."""
    if RECORD not in operator or isinstance(settings.plan, SharedPlan):
        return None
    plan, schema, rows = settings.plan, settings.schema, settings.rows
    handover = Handover.restored(operator[RECORD], plan, rows)
    return HandoverProgram(handover, plan, schema, rows, store, settings.added, staged("output"))
