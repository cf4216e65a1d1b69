"""The job file, field by field.

    source -> derive -> where -> select -> query over windows -> output
                                              progress decides when a window is answered; late rows go to `late`

Models are frozen and reject unknown fields. They check everything that needs no data: durations, preferences, scores,
and which sections may be combined.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeAlias

from pydantic import Field, PositiveInt, model_validator

from skypane.control.splitting import POLICIES
from skypane.control.worker_options import WorkerOptions
from skypane.jobs.fields import Columns, MisfitError, Section, Time
from skypane.jobs.output_section import OF_A_BATCH, AmendSection, LateSection, OutputSection
from skypane.jobs.policy_sections import AnyElastic, AnyProgress
from skypane.jobs.query_section import AnyQuery, ContinuousSection
from skypane.naming import instead
from skypane.operators.query import Query
from skypane.reporting.grids import GridSpec
from skypane.runtime.redaction import all_shown
from skypane.types import ConfigError, micros
from skypane.windows import Windows

if TYPE_CHECKING:
    Splitting: TypeAlias = str
else:
    Splitting = Literal[tuple(POLICIES)]

FILE_FORMATS = ("parquet", "csv", "json", "orc", "text")


class SourceSection(Section):
    """The source of rows: files, or any source that Spark or runtime/spark/sources/source_names.py knows by name."""

    format: str
    path: str | None = None
    #: DDL, "ts timestamp, price double"; if missing, a parquet source takes it from the existing files
    schema_: str | None = Field(default=None, alias="schema")
    max_files_per_trigger: PositiveInt | None = None
    options: dict[str, str | bool | int | float] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        files = self.format in FILE_FORMATS
        if files and self.path is None:
            raise MisfitError("path", f"is missing; format {self.format} needs it")
        if not files and self.max_files_per_trigger is not None:
            problem = f"is only for files ({', '.join(FILE_FORMATS)}), but the format is {self.format!r}"
            raise MisfitError("max_files_per_trigger", problem)
        if self.format in {"csv", "json"} and self.schema_ is None:
            raise MisfitError(
                "schema", f"is missing; format {self.format} needs one such as 'ts timestamp, price double'"
            )
        return self


class WindowSection(Section):
    """Sliding windows over an event-time column, aligned like those of Spark's window()."""

    time: str
    length: Time
    #: defaults to the length: tumbling windows
    slide: Time | None = None
    offset: Time = "0 seconds"

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.slide is not None and not 0 < micros(self.slide) <= micros(self.length):
            raise ConfigError(f"need 0 < slide <= length, got slide {self.slide!r}, length {self.length!r}")
        self.build()
        return self

    def build(self) -> Windows:
        """Return the windows."""
        return Windows.of(self.length, self.slide, self.offset)


class WorkersSection(Section):
    """The splitting of panes and the numbers of workers."""

    splitting: Splitting = "PB_RR"
    plq_workers: PositiveInt | None = None
    wlq_workers: PositiveInt | None = None
    #: policy that changes them while a stream runs; by default they are fixed
    elastic: AnyElastic | None = None

    def build(self) -> WorkerOptions:
        """Return the options."""
        elastic = None if self.elastic is None else self.elastic.build()
        return WorkerOptions(**dict(self) | {"elastic": elastic})


class SparkSection(Section):
    """Settings of the Spark session that is started if none is running."""

    master: str = "local[*]"
    conf: dict[str, str | bool | int | float] = Field(default_factory=dict)


class MapSection(Section):
    """A map in the report, whose cells are the keys of the query; see reporting/grids.py."""

    x: str
    y: str
    #: functions, and which end of each is dark; the last one is also drawn for windows over the whole run
    shade: Annotated[dict[str, Literal["high", "low"]], Field(min_length=1)]
    mark: str = ""
    places: dict[str, tuple[float, float]] = Field(default_factory=dict)

    def build(self) -> GridSpec:
        """Return the specification of the map."""
        return GridSpec(**dict(self))


class FrontSection(Section):
    """A folder that always holds the whole current front of a continuous skyline."""

    path: str


class JobFile(Section):
    """A whole job."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    #: the question that the job answers, for the report
    question: str = ""
    mode: Literal["stream", "batch"] = "stream"
    source: SourceSection
    #: new columns as `name: SQL expression`
    derive: dict[str, str] = Field(default_factory=dict)
    #: SQL condition
    where: str | None = None
    #: SQL expressions; all columns by default
    select: Columns = ()
    query: AnyQuery
    window: WindowSection | None = None
    progress: AnyProgress | None = None
    #: column that names the source of a row; late rows are counted by it, and the policy readiness follows each source
    source_column: str | None = None
    #: batch only: whether a row that cannot be ranked is an error or is dropped
    invalid: Literal["error", "drop"] = "error"
    output: OutputSection
    #: stream only: late rows amend the windows that were answered without them
    amend: AmendSection | None = None
    late: LateSection | None = None
    #: continuous skyline in a stream only: where the front is written, in addition to its updates
    front: FrontSection | None = None
    checkpoint: str | None = None
    #: "available now", an interval such as "5 seconds", or by default without pause
    trigger: str | None = None
    #: stream of aggregates with parquet output only: the map of the answers in the report
    map: MapSection | None = None
    workers: WorkersSection = WorkersSection()
    spark: SparkSection = SparkSection()

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.map is not None:
            self._fits_its_map(self.map)
        if isinstance(self.query, ContinuousSection):
            self._fits_a_front(self.query)
        elif self.front is not None:
            raise MisfitError("front", "is only for query.kind continuous_skyline; other queries answer windows")
        if self.mode == "stream":
            self._fits_a_stream()
        else:
            self._fits_a_batch()
        return self

    def _fits_its_map(self, drawn: MapSection) -> None:
        functions = getattr(self.query, "functions", {})
        for field, name, known in (
            *((axis, getattr(drawn, axis), self.query.by) for axis in ("x", "y")),
            *(("shade", name, functions) for name in drawn.shade),
            *([("mark", drawn.mark, functions)] if drawn.mark else []),
        ):
            if name not in known:
                kind = "a function of the query" if known is functions else "a column of query.by"
                raise MisfitError(f"map.{field}", f"{name!r} is not {kind}, {instead(name, list(known))}")

    def _fits_a_front(self, query: ContinuousSection) -> None:
        window = self.window
        if window is None:
            raise MisfitError("window", "is missing; its length is the time for which a row counts")
        for field in ("slide", "offset"):
            if field in window.model_fields_set:
                problem = "is not for query.kind continuous_skyline; query.every sets how often updates are written"
                raise MisfitError(f"window.{field}", problem)
        if self.amend is not None:
            raise MisfitError("amend", "is not for query.kind continuous_skyline, whose updates cannot be taken back")
        if query.every is not None and not 0 < micros(query.every) <= micros(window.length):
            problem = f"must be longer than 0 and at most the window, {window.length!r}, got {query.every!r}"
            raise MisfitError("query.every", problem)
        if self.workers.elastic is not None:
            raise MisfitError(
                "workers.elastic", "is not for query.kind continuous_skyline, whose number of shards follows their cost"
            )
        if self.mode == "batch" and query.every is not None:
            raise MisfitError("query.every", "is only for mode stream; a batch answers with the whole history")

    def _fits_a_stream(self) -> None:
        if self.window is None:
            raise MisfitError("window", "is missing; without a window a stream would never answer")
        if self.checkpoint is None and self.output.format != "console":
            where = f"writes to {self.output.path!r}" if self.output.path else f"has an output of {self.output.format}"
            problem = f"is missing; a stream that {where} needs a folder to resume from"
            raise MisfitError("checkpoint", problem)
        if "invalid" in self.model_fields_set:
            raise MisfitError("invalid", "is only for mode batch; a stream quarantines and counts such rows, see late")
        if "if_exists" in self.output.model_fields_set:
            raise MisfitError("output.if_exists", "is only for mode batch; a stream resumes from its checkpoint")

    def _fits_a_batch(self) -> None:
        stray = [
            name
            for name in ("progress", "amend", "late", "source_column", "front", "checkpoint", "trigger", "map")
            if getattr(self, name)
        ]
        if stray:
            raise MisfitError(stray[0], "is only for mode stream; a batch has all rows before it answers")
        if self.output.format not in OF_A_BATCH:
            raise MisfitError(
                "output.format",
                f"{self.output.format!r} is only for mode stream; {instead(self.output.format, OF_A_BATCH)}",
            )
        if self.workers.elastic is not None:
            raise MisfitError("workers.elastic", "is only for mode stream; a batch is one Spark job")

    def build_query(self) -> Query:
        """Return the query."""
        query, window = self.query, self.window
        if isinstance(query, ContinuousSection):
            assert window is not None  # noqa: S101 - _fits_a_front has checked it
            return query.over(window.time, micros(window.length))
        return query.build()

    def summary(self) -> dict[str, Any]:
        """Return the fields that must not change when a run of this job is resumed."""
        fields = self.model_dump(mode="json", by_alias=True, exclude={"spark", "workers", "question", "map"})
        fields["late_by"] = fields.pop("source_column")  # its name in the summaries of earlier versions
        fields["source"]["options"] = all_shown(self.source.options)  # secrets must not be stored with the summary
        # Summaries of earlier versions lack the fields that those versions did not have.
        fields["output"] = self.output.summary()
        fields["late"] = None if self.late is None else self.late.summary()
        fields["progress"] = None if self.progress is None else self.progress.summary()
        for name in ("front", "amend"):
            if getattr(self, name) is None:
                del fields[name]
        return fields
