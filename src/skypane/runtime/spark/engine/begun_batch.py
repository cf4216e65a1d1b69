"""A batch that an earlier start has delivered and not committed: it is finished by the definition that it was begun with.

Its answers follow from the rows, the newest manifest, and the definition. A sink that has them could not take others, and
readers may have seen them. So a start with another definition first runs the earlier one, for this batch alone. Then the
change takes effect, as at a start.
"""

from __future__ import annotations

from dataclasses import replace

from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine import spark_files
from skypane.runtime.spark.engine.job_settings import JobSettings
from skypane.runtime.spark.engine.ledger import Manifest
from skypane.runtime.spark.engine.query_definition import QueryDefinition
from skypane.runtime.spark.engine.recorded_plan import plan_of
from skypane.types import CheckpointError, ConfigError


def settings_of_begun(
    root: DocumentStore, batch: int, settings: JobSettings, wanted: QueryDefinition
) -> JobSettings | None:
    """Return the settings by which batch `batch`, which a sink has, was delivered; None if they are those of the job.

    Raises CheckpointError if only the job as it was then can deliver it.
    """
    before, begun = (QueryDefinition.of_batch(root, number) for number in (batch - 1, batch))
    if begun is None or before is None or begun.answers_as(wanted):
        return None
    if before.answers_as(wanted):
        return None  # a change is taken back: a folder takes the rows of the earlier query, and a table states why not
    if not begun.answers_as(before):
        raise _only_as_it_was(root, batch, "it had changed before that batch, too")
    try:
        plan, schema = plan_of(begun.fixed, begun.rules, settings.plan, settings.rows)
    except ConfigError as error:
        raise _only_as_it_was(root, batch, str(error)) from error
    return replace(settings, plan=plan, schema=schema)


def _only_as_it_was(root: DocumentStore, batch: int, why: str) -> CheckpointError:
    return CheckpointError(
        f"the checkpoint {root.root}: batch {batch} was delivered by the job as it was at its last start, which ended before "
        f"the commit, and this job cannot finish it: {why}. Start it once as it was, until the batch is committed; then the "
        f"change can follow"
    )


def columns_of_begun(
    checkpoint: DocumentStore, settings: JobSettings, latest: Manifest | None
) -> tuple[str, ...] | None:
    """Return the columns that rows need if an earlier definition may have to finish a batch; None: those of the job."""
    last, drains = (-1, 0) if latest is None else (latest.batch_id, latest.drains)
    found = QueryDefinition.of_batch(checkpoint.child("skypane"), last + 1)
    if found is None or spark_files.last_begun(checkpoint) <= last - drains:
        return None
    needed = {*settings.arriving.names, *found.fixed["column order"]}
    names = tuple(name for name in settings.rows.names if name in needed)
    return None if {*names} == {*settings.arriving.names} else names
