"""References to environment variables: "$NAME" means the value of NAME.

They keep secrets out of lists, plans, logs and checkpoints: options of Kafka's client, the login of an MQTT broker,
headers of HTTP requests.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from skypane.types import ConfigError

_NAMED = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})")


def is_named(text: object) -> bool:
    """Return whether a value is a reference, "$NAME" or "${NAME}"."""
    return isinstance(text, str) and _NAMED.fullmatch(text) is not None


def held(text: str, what: str, environment: Mapping[str, str], remedy: str = "set it") -> str:
    """Return a text, or the value of the variable that it names; raise ConfigError, naming `what`, if it is not set."""
    match = _NAMED.fullmatch(text)
    if match is None:
        return text
    name = match[1] or match[2]
    if name not in environment:
        raise ConfigError(f"{what} is in the environment variable {name}, which is not set; {remedy}")
    return environment[name]


def check_named(text: object, what: str) -> None:
    """Raise ConfigError if a secret is given as a value instead of a reference; the message does not repeat it."""
    if not is_named(text):
        raise ConfigError(f'{what} must be "$NAME", the name of an environment variable that holds it')
