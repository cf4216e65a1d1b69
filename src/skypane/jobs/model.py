"""The job file, field by field.

    source -> derive -> where -> select -> query over windows -> output
                                              progress says when to answer, late rows go to `late`

Models are frozen and refuse unknown fields. What can be checked without data is checked here: durations, preferences,
scores, and which parts go together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeAlias

from pydantic import Field, PositiveInt, model_validator

from skypane.control.splitting import POLICIES
from skypane.jobs.elasticity import AnyElastic
from skypane.jobs.fields import Columns, MisfitError, Part, Time
from skypane.jobs.policies import AnyPolicy
from skypane.jobs.queries import AnyQuery, ContinuousPart
from skypane.jobs.sinks import OF_A_BATCH, Late, Output
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


class Source(Part):
    """Where rows come from: files, or any other source that Spark knows by name, or runtime/spark/sources/named.py."""

    format: str
    path: str | None = None
    #: DDL, "ts timestamp, price double"; taken from the files that are there if a parquet source has none
    schema_: str | None = Field(default=None, alias="schema")
    max_files_per_trigger: PositiveInt | None = None
    options: dict[str, str | bool | int | float] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        files = self.format in FILE_FORMATS
        if files and self.path is None:
            raise MisfitError("path", f"is missing, format {self.format} needs it")
        if not files and self.max_files_per_trigger is not None:
            problem = f"is for files ({', '.join(FILE_FORMATS)}), the format is {self.format!r}"
            raise MisfitError("max_files_per_trigger", problem)
        if self.format in {"csv", "json"} and self.schema_ is None:
            raise MisfitError(
                "schema", f"is missing, format {self.format} needs one such as 'ts timestamp, price double'"
            )
        return self


class Window(Part):
    """Sliding windows over an event-time column, aligned as Spark's window()."""

    time: str
    length: Time
    #: tumbling windows if not given
    slide: Time | None = None
    offset: Time = "0 seconds"

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.slide is not None and not 0 < micros(self.slide) <= micros(self.length):
            raise ConfigError(f"need 0 < slide <= length, got slide {self.slide!r}, length {self.length!r}")
        self.build()
        return self

    def build(self) -> Windows:
        """Return the windows themselves."""
        return Windows.of(self.length, self.slide, self.offset)


class WorkersPart(Part):
    """How panes are split, and over how many workers."""

    splitting: Splitting = "PB_RR"
    plq_workers: PositiveInt | None = None
    wlq_workers: PositiveInt | None = None
    #: what changes them while a stream runs; nothing, if not given
    elastic: AnyElastic | None = None


class Spark(Part):
    """The session, if none is running."""

    master: str = "local[*]"
    conf: dict[str, str | bool | int | float] = Field(default_factory=dict)


class Map(Part):
    """A map in the report: keys are cells of a grid, see reporting/grids.py."""

    x: str
    y: str
    #: functions, and which end of each is dark; the last one is drawn over the run too
    shade: Annotated[dict[str, Literal["high", "low"]], Field(min_length=1)]
    mark: str = ""
    places: dict[str, tuple[float, float]] = Field(default_factory=dict)

    def build(self) -> GridSpec:
        """Return what is drawn."""
        return GridSpec(**dict(self))


class Front(Part):
    """A folder that always holds the current front of a continuous skyline, whole."""

    path: str


class JobFile(Part):
    """A whole job."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    #: what it answers, for the report
    question: str = ""
    mode: Literal["stream", "batch"] = "stream"
    source: Source
    #: new columns, name: SQL expression
    derive: dict[str, str] = Field(default_factory=dict)
    #: SQL condition
    where: str | None = None
    #: SQL expressions, all columns if not given
    select: Columns = ()
    query: AnyQuery
    window: Window | None = None
    progress: AnyPolicy | None = None
    #: column that names the source of a row, to count late rows by
    late_by: str | None = None
    #: batch only: whether a row that cannot be ranked is an error or left out
    invalid: Literal["error", "drop"] = "error"
    output: Output
    late: Late | None = None
    #: of a stream of a continuous skyline: where the front itself is, beside its updates
    front: Front | None = None
    checkpoint: str | None = None
    #: "available now", an interval such as "5 seconds", or at once, on and on
    trigger: str | None = None
    #: of a stream of aggregates that writes parquet: what its report draws of the answers
    map: Map | None = None
    workers: WorkersPart = WorkersPart()
    spark: Spark = Spark()

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.map is not None:
            self._fits_its_map(self.map)
        if isinstance(self.query, ContinuousPart):
            self._fits_a_front(self.query)
        elif self.front is not None:
            raise MisfitError("front", "is for query.kind continuous_skyline; other queries answer windows")
        if self.mode == "stream":
            self._fits_a_stream()
        else:
            self._fits_a_batch()
        return self

    def _fits_its_map(self, drawn: Map) -> None:
        functions = getattr(self.query, "functions", {})
        for field, name, known in (
            *((axis, getattr(drawn, axis), self.query.by) for axis in ("x", "y")),
            *(("shade", name, functions) for name in drawn.shade),
            *([("mark", drawn.mark, functions)] if drawn.mark else []),
        ):
            if name not in known:
                kind = "a function of the query" if known is functions else "a column of query.by"
                raise MisfitError(f"map.{field}", f"{name!r} is not {kind}, {instead(name, list(known))}")

    def _fits_a_front(self, query: ContinuousPart) -> None:
        window = self.window
        if window is None:
            raise MisfitError("window", "is missing; its length says for how long a row counts")
        for field in ("slide", "offset"):
            if field in window.model_fields_set:
                problem = "is for windows that are answered at their ends; query.every says how often updates are told"
                raise MisfitError(f"window.{field}", problem)
        if query.every is not None and not 0 < micros(query.every) <= micros(window.length):
            problem = f"must be longer than 0 and at most the window, {window.length!r}, got {query.every!r}"
            raise MisfitError("query.every", problem)
        if self.workers.elastic is not None:
            raise MisfitError("workers.elastic", "is for windows; shards of a front are chosen by what they cost")
        if self.mode == "batch" and query.every is not None:
            raise MisfitError("query.every", "is for mode stream; a batch answers with the whole history")

    def _fits_a_stream(self) -> None:
        if self.window is None:
            raise MisfitError("window", "is missing; without one a stream would never answer")
        if self.checkpoint is None and self.output.path is not None:
            problem = f"is missing; a stream that writes to {self.output.path!r} needs a folder to resume from"
            raise MisfitError("checkpoint", problem)
        if "invalid" in self.model_fields_set:
            raise MisfitError("invalid", "is for mode batch; a stream puts such rows aside and counts them, see late")
        if "if_exists" in self.output.model_fields_set:
            raise MisfitError("output.if_exists", "is for mode batch; a stream goes on where its checkpoint ends")

    def _fits_a_batch(self) -> None:
        stray = [
            name
            for name in ("progress", "late", "late_by", "front", "checkpoint", "trigger", "map")
            if getattr(self, name)
        ]
        if stray:
            raise MisfitError(stray[0], "is for mode stream; a batch has all its rows before it answers")
        if self.output.format not in OF_A_BATCH:
            raise MisfitError(
                "output.format", f"{self.output.format!r} is for mode stream; {instead(self.output.format, OF_A_BATCH)}"
            )
        if self.workers.elastic is not None:
            raise MisfitError("workers.elastic", "is for mode stream; a batch is one job of Spark's")

    def asked(self) -> Query:
        """Return the query itself."""
        query, window = self.query, self.window
        if isinstance(query, ContinuousPart):
            assert window is not None  # noqa: S101 - it fits
            return query.over(window.time, micros(window.length))
        return query.build()

    def summary(self) -> dict[str, Any]:
        """Return what makes a run of this job the same run when it is resumed."""
        told = self.model_dump(mode="json", by_alias=True, exclude={"spark", "workers", "question", "map"})
        told["source"]["options"] = all_shown(self.source.options)  # the summary is stored
        # Runs of earlier versions were described without what they did not have.
        told["output"] = self.output.summary()
        told["late"] = None if self.late is None else self.late.summary()
        told["progress"] = None if self.progress is None else self.progress.summary()
        if self.front is None:
            del told["front"]
        return told
