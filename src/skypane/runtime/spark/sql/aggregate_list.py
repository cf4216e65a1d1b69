"""The functions of skypane_aggregate as a text: 'count() AS n, sum(amount) FILTER (WHERE paid) AS total'.

Each function is written as in a job file; AS names its column, which is called as the text else, as in Spark.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final, NoReturn

from skypane.naming import shortened
from skypane.operators.aggregates.condition import condition_of
from skypane.operators.aggregates.function_text import function_of
from skypane.operators.aggregates.functions import Function
from skypane.preference.written import name_in, unaliased
from skypane.runtime.spark.sql.text_parts import parts
from skypane.types import ConfigError

_FILTER: Final = re.compile(r"^(?P<function>.*\))\s*FILTER\s*\(\s*WHERE\s+(?P<where>.*)\)$", re.IGNORECASE | re.DOTALL)


def functions_of(text: str) -> dict[str, Function]:
    """Return the functions of a list by the names of their columns; raise ConfigError, naming the function."""
    functions: dict[str, Function] = {}
    for item in parts(text):
        if not item:
            raise ConfigError(
                f"functions: {shortened(text)!r} has a place without a function: write 'count() AS n, ...'"
            )
        name = name_in(item)
        if name in functions:
            raise ConfigError(f"functions: {name!r} is twice the name of a column: rename one with AS")
        functions[name] = _function(unaliased(item))
    return functions


def _function(text: str) -> Function:
    filtered = _FILTER.match(text)
    if filtered is None:
        return _plain(text)
    function = _plain(filtered["function"])
    if function.where is not None:
        raise ConfigError(f"functions: {shortened(text)!r} has where and FILTER: write one condition")
    return replace(function, where=condition_of(filtered["where"].strip(), "where"))


def _plain(text: str) -> Function:
    try:
        return function_of(text, _refused)
    except ConfigError as error:
        raise ConfigError(f"functions: {error}") from error


def _refused(name: str) -> NoReturn:
    raise ConfigError(f"{name} names code of a module, which a call in SQL does not run: use sp.aggregate() for it")
