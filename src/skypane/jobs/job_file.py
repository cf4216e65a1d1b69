"""The job file, field by field.

    source -> derive -> where -> select -> query over windows -> output
                                              progress decides when a window is answered; late rows go to `late`

A job has one query, or several over the same rows, `queries`, each with a name, windows and an output.

Models are frozen and reject unknown fields. They check everything that needs no data: durations, preferences, scores,
and which sections may be combined.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeAlias

from pydantic import Field, PositiveInt, model_validator

from skypane.addresses import without_secrets
from skypane.control.splitting import POLICIES
from skypane.control.worker_options import WorkerOptions
from skypane.jobs.fields import Columns, MisfitError, Section, Time
from skypane.jobs.inputs_section import InputsSection
from skypane.jobs.job_query import JobQuery, NamedQuery, named_queries
from skypane.jobs.output_section import OF_A_BATCH, OF_STAYS, AmendSection, LateSection, OutputSection
from skypane.jobs.policy_sections import AnyElastic, AnyProgress
from skypane.jobs.query_section import AnyQuery, ContinuousSection
from skypane.jobs.window_section import WindowSection
from skypane.naming import instead
from skypane.operators.stay_columns import STAYS, WINDOWS, AnswerForm
from skypane.reporting.grids import GridSpec
from skypane.runtime.environment import is_named
from skypane.runtime.redaction import all_shown
from skypane.runtime.spark.sources.many.option_names import FORMAT as MANY
from skypane.types import micros

if TYPE_CHECKING:
    Splitting: TypeAlias = str
else:
    Splitting = Literal[tuple(POLICIES)]

FILE_FORMATS = ("parquet", "csv", "json", "orc", "text")


class SourceSection(Section):
    """The source of rows: files, or any source that Spark or runtime/spark/sources/source_names.py knows by name."""

    #: files: parquet, csv, json, orc or text; or the name of a source, such as kafka, rate or skypane-many
    format: str
    #: folder, file or pattern; for files only
    path: str | None = None
    #: DDL, "ts timestamp, price double"; if missing, a parquet source takes it from the existing files
    schema_: str | None = Field(default=None, alias="schema")
    #: files only: maximum number of new files in a micro-batch
    max_files_per_trigger: PositiveInt | None = None
    #: options of Spark's reader
    options: dict[str, str | bool | int | float] = Field(default_factory=dict)
    #: skypane-many in a stream only: the inputs, and how they are read
    inputs: InputsSection | None = None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        files = self.format in FILE_FORMATS
        if files and self.path is None:
            raise MisfitError("path", f"is missing; format {self.format} needs it")
        if not files and self.max_files_per_trigger is not None:
            problem = f"is only for files ({', '.join(FILE_FORMATS)}), but the format is {self.format!r}"
            raise MisfitError("max_files_per_trigger", problem)
        if self.inputs is not None:
            self._fits_many_inputs()
        if self.format in {"csv", "json"} and self.schema_ is None:
            raise MisfitError(
                "schema", f"is missing; format {self.format} needs one such as 'ts timestamp, price double'"
            )
        return self

    def _fits_many_inputs(self) -> None:
        if self.format != MANY:
            raise MisfitError("inputs", f"is only for format {MANY}, but the format is {self.format!r}")
        for other in ("path", "options"):
            if getattr(self, other):
                raise MisfitError(other, "and inputs are two ways to describe the inputs: leave one out")
        if self.schema_ is None:
            raise MisfitError("schema", "is missing; the inputs need one such as 'ts timestamp, price double'")


class WorkersSection(Section):
    """The splitting of panes and the numbers of workers."""

    #: by default the fastest way, for each batch
    splitting: Splitting | None = None
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

    #: address of the cluster; all cores of this machine by default
    master: str = "local[*]"
    #: address of a Spark Connect server, "sc://host:15002", or "$NAME"; then nothing of Spark runs here
    remote: str | None = None
    #: settings by their names in Spark
    conf: dict[str, str | bool | int | float] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.remote is None:
            return self
        if "master" in self.model_fields_set:
            raise MisfitError(
                "master", "is of a session that runs Spark here, and remote is of a server: leave one out"
            )
        if not (is_named(self.remote) or self.remote.startswith("sc://")):
            raise MisfitError("remote", 'must be the address of a Spark Connect server, such as "sc://host:15002"')
        return self


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

    #: folder of parquet files
    path: str


class JobFile(Section):
    """A whole job."""

    #: name of the job, of its streaming query in Spark and of its report
    name: Annotated[str, Field(min_length=1, max_length=200)]
    #: the question that the job answers, for the report
    question: str = ""
    #: stream: answer each window once it is complete; batch: answer from the rows that exist now, and end
    mode: Literal["stream", "batch"] = "stream"
    #: where the rows are from
    source: SourceSection
    #: new columns as `name: SQL expression`
    derive: dict[str, str] = Field(default_factory=dict)
    #: SQL condition
    where: str | None = None
    #: SQL expressions; all columns by default
    select: Columns = ()
    #: the query, by its `kind`
    query: AnyQuery | None = None
    #: stream only: several queries by name, instead of `query`
    queries: dict[str, NamedQuery] = Field(default_factory=dict)
    #: windows of the query; of several queries, of those that have none of their own
    window: WindowSection | None = None
    #: stream only: when a window is answered; aqkslack with max_drop 0.01 by default
    progress: AnyProgress | None = None
    #: column that names the source of a row; late rows are counted by it, and the policy readiness follows each source
    source_column: str | None = None
    #: batch only: whether a row that cannot be ranked is an error or is dropped
    invalid: Literal["error", "drop"] = "error"
    #: sink of the answers; of several queries a folder, in which those that have no output of their own get a folder of their name
    output: OutputSection | None = None
    #: stream only: late rows amend the windows that were answered without them
    amend: AmendSection | None = None
    #: stream only: event time between two answers of windows that have not ended; by default there are none
    early: Time | None = None
    #: stream only: "windows" writes the rows of each window; "stays" writes a row once, with the first and the last window of
    #: the unbroken run that holds it
    answers: AnswerForm = WINDOWS
    #: stream only: sink of late and quarantined rows; without it they are only counted
    late: LateSection | None = None
    #: continuous skyline in a stream only: where the front is written, in addition to its updates
    front: FrontSection | None = None
    #: stream only: folder from which the job resumes
    checkpoint: str | None = None
    #: "available now", an interval such as "5 seconds", or by default "auto": when a window can be complete
    trigger: str | None = None
    #: stream of aggregates with parquet output only: the map of the answers in the report
    map: MapSection | None = None
    #: numbers of workers, and how rows are exchanged between them
    workers: WorkersSection = WorkersSection()
    #: the Spark session that is started if none is running
    spark: SparkSection = SparkSection()

    @model_validator(mode="after")
    def _fits(self) -> Self:
        queries = self.each_query
        if self.map is not None:
            self._fits_its_map(self.map)
        for one in queries:
            if isinstance(one.query, ContinuousSection):
                self._fits_a_front(one.query)
            elif self.front is not None:
                raise MisfitError("front", "is only for query.kind continuous_skyline; other queries answer windows")
            if self.mode == "stream":
                self._fits_a_stream(one)
            else:
                self._fits_a_batch(one)
        return self

    @property
    def each_query(self) -> tuple[JobQuery, ...]:
        """The queries of the job, with their windows and outputs; the only one has the name ""."""
        if "queries" in self.model_fields_set:
            for name in ("query", "map"):
                if getattr(self, name) is not None:
                    raise MisfitError(
                        name, "is for a job of one query; this one has `queries`, each with its own query"
                    )
            if self.mode == "batch":
                raise MisfitError("queries", "is only for mode stream; write a batch job for each query")
            return named_queries(self.queries, self.window, self.output)
        if self.query is None or self.output is None:
            raise MisfitError("query" if self.query is None else "output", "is missing")
        return (JobQuery("", self.query, self.window, self.output),)

    def _fits_its_map(self, drawn: MapSection) -> None:
        query = self.query
        functions = getattr(query, "functions", {})
        for field, name, known in (
            *((axis, getattr(drawn, axis), () if query is None else query.by) for axis in ("x", "y")),
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
        if self.early is not None:
            problem = "is not for query.kind continuous_skyline; query.every sets how often updates are written"
            raise MisfitError("early", problem)
        if self.answers != WINDOWS:
            raise MisfitError("answers", "is not for query.kind continuous_skyline, whose updates say when a row stays")
        if query.every is not None and not 0 < micros(query.every) <= micros(window.length):
            problem = f"must be longer than 0 and at most the window, {window.length!r}, got {query.every!r}"
            raise MisfitError("query.every", problem)
        if self.workers.elastic is not None:
            raise MisfitError(
                "workers.elastic", "is not for query.kind continuous_skyline, whose number of shards follows their cost"
            )
        if self.mode == "batch" and query.every is not None:
            raise MisfitError("query.every", "is only for mode stream; a batch answers with the whole history")

    def _fits_a_stream(self, one: JobQuery) -> None:
        if one.window is None:
            raise MisfitError(one.field("window"), "is missing; without a window a stream would never answer")
        if self.early is not None and micros(self.early) <= 0:
            raise MisfitError("early", f"must be longer than 0, got {self.early!r}")
        if self.answers == STAYS:
            self._fits_stays(one)
        if self.checkpoint is None and one.output.format != "console":
            output = one.output
            where = f"writes to {output.path!r}" if output.path else f"has an output of {output.format}"
            problem = f"is missing; a stream that {where} needs a folder to resume from"
            raise MisfitError("checkpoint", problem)
        if "invalid" in self.model_fields_set:
            raise MisfitError("invalid", "is only for mode batch; a stream quarantines and counts such rows, see late")
        if "if_exists" in one.output.model_fields_set:
            problem = "is only for mode batch; a stream resumes from its checkpoint"
            raise MisfitError(f"{one.field('output')}.if_exists", problem)

    def _fits_stays(self, one: JobQuery) -> None:
        for name in ("amend", "early"):
            if getattr(self, name) is not None:
                raise MisfitError("answers", f"cannot be stays with {name}, which answers windows again; leave one out")
        if one.output.format not in OF_STAYS:
            problem = f"cannot be stays with {one.field('output')}.format {one.output.format}"
            raise MisfitError("answers", f"{problem}; it can with {' and '.join(OF_STAYS)}")

    def _fits_a_batch(self, one: JobQuery) -> None:
        stray = [
            name
            for name in ("progress", "amend", "early", "late", "source_column", "front", "checkpoint", "trigger", "map")
            if getattr(self, name)
        ] + (["answers"] if self.answers != WINDOWS else [])
        if self.source.inputs is not None:
            raise MisfitError("source.inputs", "is only for mode stream; a batch reads files by their format")
        if stray:
            raise MisfitError(stray[0], "is only for mode stream; a batch has all rows before it answers")
        if one.output.format not in OF_A_BATCH:
            raise MisfitError(
                "output.format",
                f"{one.output.format!r} is only for mode stream; {instead(one.output.format, OF_A_BATCH)}",
            )
        if one.output.roll is not None:
            raise MisfitError("output.roll", "is only for mode stream; Spark writes the answers of a batch at once")
        if self.workers.elastic is not None:
            raise MisfitError("workers.elastic", "is only for mode stream; a batch is one Spark job")

    def at(self, remote: str) -> JobFile:
        """Return the job for the Spark Connect server at this address, whatever the section `spark` says."""
        return self.model_copy(update={"spark": SparkSection(remote=remote, conf=self.spark.conf)})

    def summary(self) -> dict[str, Any]:
        """Return the fields that must not change when a run of this job is resumed."""
        fields = self.model_dump(mode="json", by_alias=True, exclude={"spark", "workers", "question", "map"})
        fields["late_by"] = fields.pop("source_column")  # its name in the summaries of earlier versions
        # Secrets must not be stored with the summary.
        fields["source"]["options"] = all_shown(self.source.options)
        if self.source.path is not None:
            fields["source"]["path"] = without_secrets(self.source.path)
        inputs = fields["source"].pop("inputs")
        if self.source.inputs is not None:
            fields["source"]["inputs"] = inputs | {"given": self.source.inputs.text}
        # Summaries of earlier versions lack the fields that those versions did not have.
        fields["output"] = None if self.output is None else self.output.summary()
        fields["late"] = None if self.late is None else self.late.summary()
        fields["progress"] = None if self.progress is None else self.progress.summary()
        for name in ("front", "amend", "early", "queries"):
            if not getattr(self, name):
                del fields[name]
        if self.answers == WINDOWS:
            del fields["answers"]
        return fields
