"""The section `inputs` of a source: the arguments of sp.inputs(), which reads many files, topics and receiver logs."""

from __future__ import annotations

import os
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, PositiveInt, WithJsonSchema, model_validator

from skypane.control.admission.ahead import LEAD
from skypane.control.admission.readers import Readers
from skypane.jobs.fields import MisfitError, Section, Time
from skypane.metrics import INPUT
from skypane.naming import shortened
from skypane.runtime.spark.sources.many.discovery import listed, to_text
from skypane.runtime.spark.sources.many.option_names import READERS
from skypane.types import ConfigError


def _is_list(value: Any) -> Any:
    if isinstance(value, dict):  # which may have a secret
        raise ConfigError("must be a list of inputs, such as [a.csv], got a mapping: write - before an input")
    if not isinstance(value, str | list) or not value:
        raise ConfigError(
            f"must be a list of inputs, or the path of a JSON file that has one, got {shortened(repr(value))}"
        )
    if isinstance(value, list):
        to_text(listed(value))  # raises ConfigError for an entry that no kind of input takes, and for a secret
    return value


#: a list, or the path of one; checked by one validator, so that there is one error
Given: TypeAlias = Annotated[
    Any,
    AfterValidator(_is_list),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string"},
                {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "object"}]}, "minItems": 1},
            ]
        }
    ),
]


class ReadersSection(Section):
    """The fewest readers that keep a bound on the time for which a row waits."""

    #: the largest number of reader tasks
    max_readers: PositiveInt
    latency: Time = "5 seconds"
    headroom: float = 0.1
    idle_timeout: PositiveInt = 6
    history: PositiveInt = 32
    dry_run: bool = False

    @model_validator(mode="after")
    def _can_be_built(self) -> Any:
        self.build()
        return self

    def build(self) -> Readers:
        """Return the policy."""
        return Readers(**dict(self))


class InputsSection(Section):
    """Many growing files, folders of objects, Kafka topics and receiver logs as one stream: the arguments of sp.inputs()."""

    #: paths, patterns and mappings with path, objects, kafka or segments; or the path of a JSON file with such a list, which is read
    #: again for every micro-batch
    given: Given
    #: the largest number of reader tasks
    readers: PositiveInt = READERS
    #: a bound on how long a row waits, from which the number of readers follows, instead of `readers`
    sizing: ReadersSection | None = None
    #: the largest number of rows in a micro-batch, shared among the inputs; all rows by default
    rows_per_trigger: PositiveInt | None = None
    #: column that names a row's input
    input_column: str = INPUT
    #: column with the text of a line that does not parse, its input and its offset; the other columns of such a row are null
    malformed_column: str | None = None
    #: rows of which the late sink gets the raw text: those that do not parse or have no time, or all, which takes more time
    raw_text: Literal["malformed", "all"] = "malformed"
    #: what to do if a file was shortened after it was read, an object that a batch needs is gone, or several became
    #: visible too late to know which: fail, or read the present data
    on_loss: Literal["fail", "skip"] = "fail"
    #: column of event time by which inputs are read in step; by default the only timestamp of the schema
    time_column: str | None = None
    #: whether inputs are read in step by event time while more rows wait than a micro-batch takes
    align: bool = True
    #: how long before a change of the rate, which meta-data state, its readers are there
    lead: Time = LEAD

    @model_validator(mode="after")
    def _fits(self) -> Any:
        if self.sizing is not None and "readers" in self.model_fields_set:
            raise MisfitError(
                "readers", "is the number of readers, which sizing sets, up to its max_readers: leave one out"
            )
        return self

    @property
    def text(self) -> str:
        """The list as the source keeps it: in JSON, or the absolute path of its file."""
        return os.path.abspath(self.given) if isinstance(self.given, str) else to_text(listed(self.given))  # noqa: PTH100

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of sp.inputs() beside the list and the schema."""
        others = {name: value for name, value in dict(self).items() if name not in {"given", "sizing"}}
        return others if self.sizing is None else others | {"readers": self.sizing.build()}
