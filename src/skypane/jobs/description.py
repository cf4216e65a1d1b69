"""Describe a job in words, for `--dry-run` and for the settings table of its report."""

from __future__ import annotations

from typing import Final

from skypane.addresses import without_secrets
from skypane.jobs.job_file import JobFile
from skypane.jobs.job_query import JobQuery
from skypane.jobs.output_section import OutputSection
from skypane.jobs.query_section import ContinuousSection
from skypane.operators.stay_columns import STAYS
from skypane.preference import Preference
from skypane.preference.criteria import High, Low
from skypane.progress.default_policy import DEFAULT
from skypane.reporting.snapshot import Criterion
from skypane.runtime.redaction import all_shown
from skypane.types import micros
from skypane.wording import count, counted, span

_AUTO: Final = "auto: each micro-batch starts when it can complete a window, or at once if rows wait"


def settings(job: JobFile) -> list[tuple[str, str]]:
    """Return (name, value) pairs that describe what the job does, section by section."""
    pairs = [("mode", job.mode), ("source", _source(job)), ("rows", _rows(job))]
    for one in job.each_query:
        pairs += [(_of("query", one), str(one.build())), (_of("window", one), _window(one))]
    if job.mode == "stream":
        policy = (
            f"AqKSlack(max_drop={DEFAULT.max_drop}), the default"
            if job.progress is None
            else repr(job.progress.build())
        )
        pairs += [
            ("progress", policy),
            ("trigger", _AUTO if job.trigger in {None, "auto"} else job.trigger),
            ("checkpoint", job.checkpoint or "a temporary folder"),
            ("workers", _workers(job)),
            ("late rows", "counted only" if job.late is None else _output(job.late)),
        ]
    if job.early is not None:
        pairs.append(("early answers", f"every {span(micros(job.early))} of event time"))
    if job.answers == STAYS:
        pairs.append(("answers", "stays: each row once for a run of windows"))
    pairs += [(_of("output", one), _output(one.output)) for one in job.each_query]
    return pairs + ([] if job.front is None else [("front", job.front.path)])


def criteria(one: JobQuery) -> tuple[Criterion, ...]:
    """Return the columns by which a query ranks rows and of which low or high values are better."""
    preference = getattr(one.build(), "preference", None)
    ranked = preference.criteria if isinstance(preference, Preference) else ()
    ends = [(c.column, "low" if isinstance(c, Low) else "high") for c in ranked if isinstance(c, Low | High)]
    return tuple(Criterion(column, end) for column, end in ends)


def _of(section: str, one: JobQuery) -> str:
    return f"{section} of {one.name}" if one.name else section


def _output(output: OutputSection) -> str:
    return output.format if output.path is None else f"{output.format} in {without_secrets(output.path)}"


def _source(job: JobFile) -> str:
    source = job.source
    options = ", ".join(f"{name}={value}" for name, value in all_shown(source.options).items())
    if source.inputs is not None:
        options = f"inputs {without_secrets(source.inputs.text)}"
    return " ".join(
        part for part in (source.format, without_secrets(source.path or ""), f"({options})" if options else "") if part
    )


def _rows(job: JobFile) -> str:
    parts = [f"{name} = {expression}" for name, expression in job.derive.items()]
    parts += [f"where {job.where}"] if job.where else []
    parts += [f"select {', '.join(job.select)}"] if job.select else []
    return "; ".join(parts) or "unchanged"


def _workers(job: JobFile) -> str:
    workers = job.workers
    numbers = [f"{count(number)} at {level} level" for number, level in
             ((workers.plq_workers, "pane"), (workers.wlq_workers, "window")) if number is not None]  # fmt: skip
    initial = " and ".join(numbers) or "one per core"
    return initial if workers.elastic is None else f"{initial} at first, then by {workers.elastic.build()}"


def _window(one: JobQuery) -> str:
    if one.window is None:
        return "none; one answer over all rows"
    if isinstance(one.query, ContinuousSection):
        interval = f", updates every {one.query.every}" if one.query.every else ""
        return f"the last {span(micros(one.window.length))} of {one.window.time}{interval}"
    windows = one.window.build()
    most = "up to " if windows.head else ""
    panes = f"{counted(windows.panes_per_window, 'panes')} of {most}{span(windows.longest_pane)}"
    return f"{span(windows.length)} of {one.window.time}, every {span(windows.slide)}: {panes}"
