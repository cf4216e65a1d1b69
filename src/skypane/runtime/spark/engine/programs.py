"""The choice of the program that runs a plan."""

from __future__ import annotations

from typing import Any

from skypane.plan import ContinuousPlan
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine.arrow_transfer import ArrowTransfer
from skypane.runtime.spark.engine.front_program import ContinuousProgram
from skypane.runtime.spark.engine.ingest import Ingest
from skypane.runtime.spark.engine.job_settings import JobSettings
from skypane.runtime.spark.engine.program import Program
from skypane.runtime.spark.engine.window_program import WindowedProgram


def program_of(settings: JobSettings, store: DocumentStore, staged: DocumentStore) -> Program[Any]:
    """Return the program of a job's plan; partials are kept in `store`, and workers write answers to `staged`."""
    plan = settings.plan
    intake = Ingest(plan, settings.schema, store, settings.sinks.late is not None, ArrowTransfer(settings.schema))
    if isinstance(plan, ContinuousPlan):
        return ContinuousProgram(plan, intake, settings.answer_schema)
    return WindowedProgram(plan, intake, settings.answer_schema, staged)
