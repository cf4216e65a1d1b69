"""The `query` section: one model for each query there is, made from what its constructor takes."""

from __future__ import annotations

import inspect
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, Field, PositiveInt, PrivateAttr, ValidationInfo, create_model, model_validator

from skypane.jobs.fields import Columns, Part, Time
from skypane.jobs.named import Modules
from skypane.operators.aggregates.text import function_of
from skypane.operators.continuous.query import ContinuousSkyline
from skypane.operators.queries import QUERIES
from skypane.operators.query import Query
from skypane.preference import Preference, Score
from skypane.types import ConfigError, Micros


def _is_preference(text: str) -> str:
    Preference.of(text)
    return text


def _modules(info: ValidationInfo) -> Modules:
    """Return what whoever reads the job allows."""
    return (info.context or {}).get("modules") or Modules()


def _is_function(text: str, info: ValidationInfo) -> str:
    function_of(text, _modules(info))
    return text


def _is_score(text: str) -> str:
    Score.of(text)
    return text


#: "price MIN, rating MAX"
PreferenceText: TypeAlias = Annotated[str, AfterValidator(_is_preference)]
#: arithmetic over columns: "2 * rating - log(price)"
ScoreText: TypeAlias = Annotated[str, AfterValidator(_is_score)]
#: "sum(amount, where=paid == 'card')"
FunctionText: TypeAlias = Annotated[str, AfterValidator(_is_function)]


class QueryPart(Part):
    """A query by its kind, with the arguments of its constructor; preferences, scores and functions are texts."""

    by: Columns = ()
    kind: str
    _modules: Modules = PrivateAttr(default_factory=Modules)

    @model_validator(mode="after")
    def _can_be_built(self, info: ValidationInfo) -> Any:
        self._modules = _modules(info)
        self.build()  # raises where the parts do not fit, as a k above the number of criteria
        return self

    def build(self) -> Query:
        """Return the query itself."""
        arguments = self.model_dump(exclude={"kind", "functions"})
        functions = {name: function_of(text, self._modules) for name, text in getattr(self, "functions", {}).items()}
        clashes = sorted(arguments.keys() & functions.keys())
        if clashes:
            raise ConfigError(f"functions may not be called {', '.join(clashes)}, as fields of the query are")
        query: Query = QUERIES[self.kind](**arguments, **functions)
        return query


#: how a job file writes an argument, by the annotation that it has in the constructor
_WRITTEN = {
    "int": PositiveInt,
    "bool": bool,
    "Columns": Columns,
    "Preference | str": PreferenceText,
    "Score | ColumnLike": ScoreText,
    "ColumnLike | None": str | None,
    "str | None": str | None,
    "int | None": PositiveInt | None,
}


def _model(kind: str, query: type[Query]) -> type[QueryPart]:
    fields: dict[str, Any] = {"kind": (Literal[kind], ...)}
    for name, parameter in inspect.signature(query).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:  # what each column of the answer is called, and its function
            fields[name] = (dict[str, FunctionText], ...)
            continue
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[name] = (_WRITTEN[parameter.annotation], default)
    return create_model(query.__name__, __base__=QueryPart, __doc__=query.__doc__, **fields)


class ContinuousPart(Part):
    """One front that follows the stream, instead of an answer for each window: sp.continuous_skyline()."""

    kind: Literal["continuous_skyline"]
    preference: PreferenceText
    by: Columns = ()
    #: span of event time whose updates are told at once, of a stream
    every: Time | None = None

    @model_validator(mode="after")
    def _can_be_built(self) -> Any:
        Preference.of(self.preference).require_flat("continuous skylines")
        return self

    def over(self, time: str, length: Micros) -> ContinuousSkyline:
        """Return the query itself, over the last `length` microseconds of a time column."""
        return ContinuousSkyline(self.preference, time, length, self.by)


MODELS = {kind: _model(kind, query) for kind, query in QUERIES.items()}

if TYPE_CHECKING:
    AnyQuery: TypeAlias = QueryPart | ContinuousPart
else:
    AnyQuery = Annotated[reduce(or_, MODELS.values()) | ContinuousPart, Field(discriminator="kind")]
