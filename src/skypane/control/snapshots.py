"""States of control laws as JSON values and back; what does not fit is refused with the name of the field."""

from __future__ import annotations

import json
from collections.abc import Hashable
from functools import cache
from typing import Any, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from skypane.types import CheckpointError

T = TypeVar("T")


class JsonState:
    """Base of frozen dataclasses that go into the ledger: exactly their fields, whole numbers whole, numbers finite."""

    __slots__ = ()
    __pydantic_config__ = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


@cache
def _adapter(kind: Hashable) -> TypeAdapter[Any]:
    form: Any = kind  # a class is hashable, but mypy does not see it
    return TypeAdapter(form)


def to_json(value: Any) -> Any:
    """Return a dataclass of JSON values, tuples and mappings as plain JSON."""
    kind: Any = type(value)
    return _adapter(kind).dump_python(value, mode="json")


def from_json(kind: type[T], snapshot: Any) -> T:
    """Return the `kind` that to_json() made this of; raise CheckpointError if it made none."""
    try:
        hashable: Any = kind
        value: T = _adapter(hashable).validate_json(json.dumps(snapshot))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or kind.__name__
        raise CheckpointError(
            f"{kind.__name__} in the checkpoint: {where}: {first['msg']}, got {first['input']!r}"
        ) from None
    return value
