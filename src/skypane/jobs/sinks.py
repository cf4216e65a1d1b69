"""The `output` and `late` sections: the sinks of runtime/spark/sinks/registry.py that a text can describe, by their formats."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from pydantic import Field, PositiveInt, model_validator

from skypane.jobs.fields import MisfitError, Part
from skypane.naming import instead, registered
from skypane.runtime.spark.sinks import registry
from skypane.runtime.spark.sinks.sink import Sink


def _formats(sink: type[Sink]) -> tuple[str, ...]:
    """Return what a sink is called by: what it says itself, else its class in small letters."""
    formats: tuple[str, ...] = getattr(sink, "job_formats", (sink.__name__.lower(),))
    return formats


SINKS: Final[dict[str, type[Sink]]] = {name: sink for sink in registered(registry).values() for name in _formats(sink)}

#: what a batch job writes, which is Spark's work
OF_A_BATCH: Final = ("parquet", "csv", "json", "console")

if TYPE_CHECKING:
    Format: TypeAlias = str
else:
    Format = Literal[tuple(SINKS)]

_OWN: Final = ("format", "path", "rows", "holds")
"""Parameters that have a field of their own, or that are none of a user's."""


class Output(Part):
    """A sink by its format: files in a folder, the console, or what else there is."""

    format: Format = "parquet"
    path: str | None = None
    #: rows to print per batch (console)
    rows: PositiveInt = 20
    #: of a batch job only: what becomes of a folder that is there
    if_exists: Literal["error", "overwrite"] = "error"
    #: what else the sink takes
    options: dict[str, str | bool | int | float] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _fits(self) -> Any:
        takes = inspect.signature(SINKS[self.format]).parameters
        if "path" not in takes and self.path is not None:
            raise MisfitError("path", f"is not for the {self.format}")
        if "path" in takes and self.path is None and takes["path"].default is inspect.Parameter.empty:
            raise MisfitError("path", f"is missing, format {self.format} needs it")
        free = [name for name in takes if name not in _OWN]
        for name in self.options:
            if name not in free:
                known = instead(name, free) if free else "it has none"
                raise MisfitError(f"options.{name}", f"is no option of format {self.format}; {known}")
        self.build()
        return self

    def build(self) -> Sink:
        """Return the sink itself."""
        takes = inspect.signature(SINKS[self.format]).parameters
        said: Mapping[str, Any] = {"format": self.format, "path": self.path, "rows": self.rows}
        return SINKS[self.format](**{name: said[name] for name in said if name in takes}, **self.options)

    def summary(self) -> dict[str, Any]:
        """Return what makes a run that writes so the same run when it is resumed."""
        return self.model_dump(mode="json", exclude=set() if self.options else {"options"})


class Late(Output):
    """Rows that came too late or cannot be used, each with its reason."""

    @model_validator(mode="after")
    def _has_a_place(self) -> Any:
        if self.path is None:
            raise MisfitError("path", f"is missing; late rows go to a folder of their own, not to the {self.format}")
        for name in ("rows", "if_exists"):
            if name in self.model_fields_set:
                raise MisfitError(name, "is for the output")
        return self

    def summary(self) -> dict[str, Any]:
        return {name: value for name, value in super().summary().items() if name not in {"rows", "if_exists"}}
