"""The `query` section: one model per registered query, built from the parameters of its constructor."""

from __future__ import annotations

import inspect
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

from pydantic import AfterValidator, Field, PositiveInt, PrivateAttr, ValidationInfo, create_model, model_validator

from skypane.jobs.fields import Columns, Section, Time, shown
from skypane.jobs.user_code import AllowedModules
from skypane.naming import snake_case
from skypane.operators import registry
from skypane.operators.aggregates.function_text import function_of
from skypane.operators.fronts.continuous_skyline import ContinuousSkyline
from skypane.operators.query import Query
from skypane.plugins import Registered
from skypane.preference import Preference, Score
from skypane.types import Micros

QUERIES: Final[dict[str, type[Query]]] = {snake_case(name): query for name, query in Registered(registry).items()}


def _is_preference(text: str) -> str:
    Preference.of(text)
    return text


def _modules(info: ValidationInfo) -> AllowedModules:
    """Return the modules that the caller of read() or parse() allows."""
    return (info.context or {}).get("modules") or AllowedModules()


def _is_function(text: str, info: ValidationInfo) -> str:
    function_of(text, _modules(info))
    return text


def _is_score(text: str) -> str:
    Score.of(text)
    return text


#: "price MIN, rating MAX"
PreferenceText: TypeAlias = Annotated[str, AfterValidator(_is_preference), shown("price MIN, rating MAX")]
#: arithmetic over columns, or other SQL: "2 * rating - log(price)"
ScoreText: TypeAlias = Annotated[str, AfterValidator(_is_score), shown("2 * rating - log(price)")]
#: "sum(amount, where=paid == 'card')"
FunctionText: TypeAlias = Annotated[
    str, AfterValidator(_is_function), shown("count()", "sum(amount, where=paid == 'card')")
]


class QuerySection(Section):
    """A query by its kind, with the arguments of its constructor; preferences, scores and functions are texts."""

    #: one answer per distinct value of these columns
    by: Columns = ()
    #: the query
    kind: str
    _modules: AllowedModules = PrivateAttr(default_factory=AllowedModules)

    @model_validator(mode="after")
    def _can_be_built(self, info: ValidationInfo) -> Any:
        self._modules = _modules(info)
        self.build()  # raises for arguments that do not fit together, such as a k above the number of criteria
        return self

    def build(self) -> Query:
        """Return the query."""
        arguments = self.model_dump(exclude={"kind"})
        if "functions" in arguments:
            texts: dict[str, str] = arguments["functions"]
            arguments["functions"] = {name: function_of(text, self._modules) for name, text in texts.items()}
        query: Query = QUERIES[self.kind](**arguments)
        return query


#: type of a field in a job file, by the annotation of the constructor's parameter
_WRITTEN = {
    "int": PositiveInt,
    "bool": bool,
    "Columns": Columns,
    "Preference | str": PreferenceText,
    "Score | ColumnLike": ScoreText,
    "ColumnLike | None": str | None,
    "str | None": str | None,
    "int | None": PositiveInt | None,
    "Mapping[str, Function] | None": dict[str, FunctionText],
}


def _model(kind: str, query: type[Query]) -> type[QuerySection]:
    fields: dict[str, Any] = {"kind": (Literal[kind], ...)}
    for name, parameter in inspect.signature(query).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            continue  # in a job file all functions are in the mapping of them, which is not left out
        default = ... if parameter.default is parameter.empty or name == "functions" else parameter.default
        fields[name] = (_WRITTEN[parameter.annotation], default)
    return create_model(query.__name__, __base__=QuerySection, __doc__=query.__doc__, **fields)


class ContinuousSection(Section):
    """One front that is kept up to date, instead of an answer per window: sp.continuous_skyline(), sp.skyline_history()."""

    #: the query
    kind: Literal["continuous_skyline"]
    #: which values of which columns are better
    preference: PreferenceText
    #: one front per distinct value of these columns
    by: Columns = ()
    #: stream only: event time between two writes of updates
    every: Time | None = None

    @model_validator(mode="after")
    def _can_be_built(self) -> Any:
        Preference.of(self.preference).require_flat("continuous skylines")
        return self

    def over(self, time: str, length: Micros) -> ContinuousSkyline:
        """Return the query over the last `length` microseconds of a time column."""
        return ContinuousSkyline(self.preference, time, length, self.by)


MODELS = {kind: _model(kind, query) for kind, query in QUERIES.items()}

if TYPE_CHECKING:
    AnyQuery: TypeAlias = QuerySection | ContinuousSection
else:
    AnyQuery = Annotated[reduce(or_, MODELS.values()) | ContinuousSection, Field(discriminator="kind")]
