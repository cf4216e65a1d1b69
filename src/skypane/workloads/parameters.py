"""Construction of frozen configs from plain parameters of a command line or a file; errors name the parameter."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from datetime import timedelta
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from skypane.types import ConfigError, Length

T = TypeVar("T")


def accepted(config: type[Any]) -> tuple[str, ...]:
    """Return the names of the parameters of a config, those without a default first."""
    return tuple(field.name for field in sorted(fields(config), key=lambda f: not _required(f)))


def build(config: type[T], parameters: Mapping[str, Any], what: str) -> T:
    """Return the config with the given parameters; texts are converted to the type of the field.

    Raises ConfigError, naming `what` and the parameter, if one is unknown, missing, or cannot be converted.
    """
    known = {field.name: field for field in fields(config)}  # type: ignore[arg-type]
    for name in parameters:
        if name not in known:
            raise ConfigError(f"{what} has no parameter {name!r}; it takes {', '.join(accepted(config)) or 'none'}")
    for name, field in known.items():
        if _required(field) and name not in parameters:
            raise ConfigError(f"{what} needs {name}; it takes {', '.join(accepted(config))}")
    # skypane.types defines Duration as a string, which get_type_hints cannot evaluate in `Duration | None`.
    hints = get_type_hints(config, localns={"Duration": str | timedelta | Length})
    return config(**{name: _read(value, hints[name], f"{what}: {name}") for name, value in parameters.items()})


def _required(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _read(value: Any, hint: Any, name: str) -> Any:
    """Return `value` converted to the type `hint`."""
    if get_origin(hint) is tuple:
        items = value.split(",") if isinstance(value, str) else value
        if not isinstance(items, list | tuple):
            raise ConfigError(f"{name} must be a list, such as 1,2,3, got {value!r}")
        return tuple(_read(item, get_args(hint)[0], name) for item in items)
    if get_origin(hint) in {types.UnionType, typing.Union}:
        return value if str in get_args(hint) or value is None else _read(value, get_args(hint)[0], name)
    if get_origin(hint) is Literal:
        if value not in get_args(hint):
            raise ConfigError(f"{name} must be one of {', '.join(get_args(hint))}, got {value!r}")
        return value
    return _number(value, hint, name) if hint in {int, float} else value


def _number(value: Any, kind: type[int | float], name: str) -> Any:
    try:
        number = float(value)
        if not isinstance(value, bool) and (kind is float or number.is_integer()):
            # Integers are not converted through float where possible, so that those above 2^53 stay exact.
            return number if kind is float else int(number if isinstance(value, str) and not _digits(value) else value)
    except (TypeError, ValueError):
        pass
    wanted = "a number" if kind is float else "a whole number"
    raise ConfigError(f"{name} must be {wanted}, got {value!r}")


def _digits(text: str) -> bool:
    return text.strip().lstrip("+-").replace("_", "").isdigit()
