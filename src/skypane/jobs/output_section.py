"""The `output`, `late` and `amend` sections: the sinks of runtime/spark/sinks/registry.py, chosen by their formats."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from pydantic import Field, PositiveInt, model_validator

from skypane.jobs.fields import MisfitError, Section, Time
from skypane.naming import instead
from skypane.operators.amendments import MAX_BYTES
from skypane.plugins import Registered
from skypane.runtime.spark.amend import Amend
from skypane.runtime.spark.sinks import registry
from skypane.runtime.spark.sinks.sink import Sink


def _formats(sink: type[Sink]) -> tuple[str, ...]:
    """Return the formats of a sink: its `job_formats`, or else its class name in lower case."""
    formats: tuple[str, ...] = getattr(sink, "job_formats", (sink.__name__.lower(),))
    return formats


SINKS: Final[dict[str, type[Sink]]] = {name: sink for sink in Registered(registry).values() for name in _formats(sink)}

#: formats of a batch job, which Spark writes itself
OF_A_BATCH: Final = ("parquet", "csv", "json", "console")

#: formats that take stays (runtime/spark/sinks/sink_arguments.py)
OF_STAYS: Final = ("parquet", "console")

if TYPE_CHECKING:
    Format: TypeAlias = str
else:
    Format = Literal[tuple(SINKS)]

_OWN: Final = ("format", "path", "rows", "roll", "roll_bytes", "holds")
"""Parameters of sinks that have fields of their own in a job file, or that users do not set."""


_Option: TypeAlias = str | bool | int | float


class OutputSection(Section):
    """A sink by its format: files in a folder, the console, or a sink of a plugin."""

    #: files of this format, or another sink by its name
    format: Format = "parquet"
    #: folder of the files
    path: str | None = None
    #: rows to print per micro-batch (console)
    rows: PositiveInt = 20
    #: batch only: whether an existing folder is an error or is overwritten
    if_exists: Literal["error", "overwrite"] = "error"
    #: stream only: longest time for which answers of several micro-batches wait for a file that they share (files)
    roll: Time | None = None
    #: bytes of parquet at which that file is written earlier; 128 MiB by default
    roll_bytes: PositiveInt | None = None
    #: other arguments of the sink
    options: dict[str, _Option | list[str] | dict[str, _Option]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _fits(self) -> Any:
        takes = inspect.signature(SINKS[self.format]).parameters
        if "path" not in takes and self.path is not None:
            raise MisfitError("path", f"is not for format {self.format}")
        if "path" in takes and self.path is None and takes["path"].default is inspect.Parameter.empty:
            raise MisfitError("path", f"is missing; format {self.format} needs it")
        for name in ("roll", "roll_bytes"):
            if name not in takes and getattr(self, name) is not None:
                raise MisfitError(name, f"is not for format {self.format}, which has no files")
        if self.roll_bytes is not None and self.roll is None:
            raise MisfitError("roll", "is missing; roll_bytes needs the longest time for which answers wait")
        free = [name for name in takes if name not in _OWN]
        for name in self.options:
            if name not in free:
                known = instead(name, free) if free else "this format has no options"
                raise MisfitError(f"options.{name}", f"is not an option of format {self.format}; {known}")
        for name in free:
            if name not in self.options and takes[name].default is inspect.Parameter.empty:
                raise MisfitError(f"options.{name}", f"is missing; format {self.format} needs it")
        self.build()
        return self

    def build(self) -> Sink:
        """Return the sink."""
        takes = inspect.signature(SINKS[self.format]).parameters
        known: dict[str, Any] = {"format": self.format, "path": self.path, "rows": self.rows}
        rolls = {"roll": self.roll, "roll_bytes": self.roll_bytes}
        given = known | {name: value for name, value in rolls.items() if value is not None}
        return SINKS[self.format](**{name: given[name] for name in given if name in takes}, **self.options)

    def summary(self) -> dict[str, Any]:
        """Return the fields that must not change when a run with this output is resumed."""
        free = {"roll", "roll_bytes"}
        return self.model_dump(mode="json", exclude=free if self.options else free | {"options"})


class LateSection(OutputSection):
    """The sink of late and quarantined rows, each with its reason."""

    @model_validator(mode="after")
    def _is_of_a_stream(self) -> Any:
        if "if_exists" in self.model_fields_set:
            raise MisfitError("if_exists", "is only for the section output of a batch")
        return self

    def summary(self) -> dict[str, Any]:
        return {name: value for name, value in super().summary().items() if name not in {"rows", "if_exists"}}


class AmendSection(Section):
    """Late rows amend the windows that were answered without them; the section `late` has the sink of later rows."""

    within: Time
    max_bytes: PositiveInt = MAX_BYTES
    #: whether a version has only the rows in which it differs from the one before it
    changes: bool = False

    @model_validator(mode="after")
    def _can_be_built(self) -> Any:
        self.build(None)
        return self

    def build(self, then: Sink | None) -> Amend:
        """Return the rule, with the sink of the rows that are later."""
        return Amend(self.within, then, self.max_bytes, self.changes)
