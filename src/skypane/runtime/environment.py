"""What a list names and does not hold: "$NAME" stands for what the environment variable NAME holds.

So secrets are in no list, plan, log or checkpoint, whatever reads there: the options of Kafka's client, the login of a
broker, the headers of a request.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from skypane.types import ConfigError

_NAMED = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})")


def is_named(text: object) -> bool:
    """Return whether a text is "$NAME" or "${NAME}", and not a value itself."""
    return isinstance(text, str) and _NAMED.fullmatch(text) is not None


def held(text: str, what: str, environment: Mapping[str, str], remedy: str = "set it") -> str:
    """Return a text, or what the environment holds if it names a variable; ConfigError, naming `what`, if it is not set."""
    match = _NAMED.fullmatch(text)
    if match is None:
        return text
    name = match[1] or match[2]
    if name not in environment:
        raise ConfigError(f"{what} is in the environment variable {name}, which is not set; {remedy}")
    return environment[name]


def check_named(text: object, what: str) -> None:
    """Raise ConfigError, without repeating it, for a secret that is given itself."""
    if not is_named(text):
        raise ConfigError(f'{what} must be "$NAME", with the name of an environment variable that holds it')
