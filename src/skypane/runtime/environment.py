"""References to environment variables: "$NAME" means the value of NAME.

They keep secrets out of lists, plans, logs and checkpoints: options of Kafka's client, the login of an MQTT broker,
headers of HTTP requests.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from skypane.types import ConfigError

_NOT_IN_A_LINE = re.compile("[\x00-\x08\x0a-\x1f\x7f]|[^\x00-\xff]")
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


def held_line(text: str, what: str, environment: Mapping[str, str]) -> str:
    """Return what held() returns, for a place that takes one line: a header, a login.

    Raises ConfigError, naming the variable and not its value, for a line end, a control character, or one beyond Latin-1.
    """
    value = held(text, what, environment)
    if (found := _NOT_IN_A_LINE.search(value)) is not None:
        sign = "a line end" if found[0] in "\r\n" else f"the character U+{ord(found[0]):04X}"
        raise ConfigError(
            f"{what} is in the environment variable {text.strip('${}')}, whose value of {len(value)} characters has {sign} at "
            f"character {found.start() + 1}, which cannot be sent: set it without"
        )
    return value


def check_named(text: object, what: str) -> None:
    """Raise ConfigError if a secret is given as a value instead of a reference; the message does not repeat it."""
    if not is_named(text):
        raise ConfigError(f'{what} must be "$NAME", the name of an environment variable that holds it')
