"""The queries of a job, with their windows and outputs: the only one, or each of the section `queries`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from skypane.jobs.fields import MisfitError, Section
from skypane.jobs.output_section import SINKS, OutputSection
from skypane.jobs.query_section import AnyQuery, ContinuousSection
from skypane.jobs.window_section import OwnWindowSection, WindowSection
from skypane.operators.query import Query
from skypane.runtime.spark.sinks.directory import Directory
from skypane.shared_plan import check_name
from skypane.types import ConfigError, micros


class NamedQuery(Section):
    """One of several queries over the rows of a job; without windows or an output, it has those of the job."""

    #: the query, by its `kind`
    query: AnyQuery
    #: defaults to the windows of the job
    window: OwnWindowSection | None = None
    #: defaults to a folder of the query's name in the output of the job
    output: OutputSection | None = None


@dataclass(frozen=True)
class JobQuery:
    """A query of a job, its windows (None: one answer over all rows) and its output.

    name   its name among several queries; "" for the only query of a job
    """

    name: str
    query: AnyQuery
    window: WindowSection | None
    output: OutputSection

    def field(self, section: str) -> str:
        """Return the path of one of its sections in the job file."""
        return f"queries.{self.name}.{section}" if self.name else section

    def build(self) -> Query:
        """Return the query."""
        query, window = self.query, self.window
        if isinstance(query, ContinuousSection):
            assert window is not None  # noqa: S101 - JobFile has checked it
            return query.over(window.time, micros(window.length))
        return query.build()


def named_queries(
    queries: Mapping[str, NamedQuery], window: WindowSection | None, output: OutputSection | None
) -> tuple[JobQuery, ...]:
    """Return the queries of the section `queries`; `window` and `output` are for those that have none of their own.

    Raises MisfitError, with the path of the field, if they do not fit together.
    """
    if not queries:
        raise MisfitError("queries", "must have at least one query by name, such as best: {query: ...}")
    uses = {
        "window": any(one.window is None or one.window.time is None for one in queries.values()),
        "output": any(one.output is None for one in queries.values()),
    }
    for field, given in (("window", window), ("output", output)):
        if given is not None and not uses[field]:
            raise MisfitError(field, "is used by no query, because each has one of its own; remove it")
    found = tuple(_named(name, one, window, output) for name, one in queries.items())
    first = found[0].window
    for one in found:
        if one.window is not None and first is not None and one.window.time != first.time:
            problem = f"must be {first.time!r}, as that of query {found[0].name!r}, got {one.window.time!r}"
            raise MisfitError(one.field("window.time"), problem)
    return found


def _named(name: str, one: NamedQuery, window: WindowSection | None, output: OutputSection | None) -> JobQuery:
    path = f"queries.{name}"
    try:
        check_name(name)
    except ConfigError as error:
        raise MisfitError(path, str(error)) from None
    if isinstance(one.query, ContinuousSection):
        raise MisfitError(
            f"{path}.query.kind", "cannot be 'continuous_skyline', which answers no windows: run it alone"
        )
    return JobQuery(name, one.query, _window(path, one.window, window), _output(path, name, one.output, output))


def _window(path: str, own: OwnWindowSection | None, shared: WindowSection | None) -> WindowSection | None:
    if own is None:
        return shared
    time = own.time if own.time is not None else None if shared is None else shared.time
    if time is None:
        raise MisfitError(f"{path}.window.time", "is missing; name the column here, or for all queries in window.time")
    return WindowSection(time=time, length=own.length, slide=own.slide, offset=own.offset)


def _output(path: str, name: str, own: OutputSection | None, shared: OutputSection | None) -> OutputSection:
    if own is not None:
        return own
    if shared is None:
        raise MisfitError(f"{path}.output", "is missing; give the query one, or the job a folder as output")
    if shared.path is None or not issubclass(SINKS[shared.format], Directory):
        problem = f"must be a folder, in which each query gets a folder of its name, or be in each query: {path}.output"
        raise MisfitError("output", problem)
    return shared.model_copy(update={"path": f"{shared.path.rstrip('/')}/{name}"})
