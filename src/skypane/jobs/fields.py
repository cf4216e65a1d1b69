"""Types of fields that several sections of a job file share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, TypeAlias, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, WithJsonSchema

from skypane.types import ConfigError, micros


class Section(BaseModel):
    """A section of a job file: frozen, and an unknown field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def sections(annotation: Any) -> Iterator[type[Section]]:
    """Yield the models of sections that a field with this annotation accepts."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        yield annotation
    for inner in get_args(annotation):
        yield from sections(inner)


class MisfitError(ConfigError):
    """A field that is valid by itself but conflicts with others; `field` is its name within its section."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(problem)
        self.field = field


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _is_duration(text: str) -> str:
    micros(text, "length of time")
    return text


def _is_cadence(value: Any) -> Any:
    if type(value) is not int and not isinstance(value, str):
        raise ConfigError(f"must be a whole number, or a length of time such as '10 seconds', got {value!r}")
    return _is_duration(value) if isinstance(value, str) else value


def shown(*examples: str) -> WithJsonSchema:
    """Return the JSON Schema of a text, with examples."""
    return WithJsonSchema({"type": "string", "examples": list(examples)})


#: one column, or a list of them
Columns: TypeAlias = Annotated[tuple[str, ...], BeforeValidator(_as_list, json_schema_input_type=str | tuple[str, ...])]
#: "1 hour 30 minutes"
Time: TypeAlias = Annotated[str, AfterValidator(_is_duration), shown("1 hour 30 minutes")]
#: a number or a length of time; checked by one validator, so that there is one error
Cadence: TypeAlias = Annotated[
    Any,
    AfterValidator(_is_cadence),
    WithJsonSchema({"anyOf": [{"type": "integer"}, {"type": "string", "examples": ["10 seconds"]}]}),
]
