"""Schemas of messages, from a schema registry: where it is, and this process's client of it.

A message begins with a byte 0 and the identifier of its writer's schema in four bytes, as the clients of Confluent and
others frame it. A process requests each schema once and keeps it, because schemas never change under their identifier.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from http import HTTPStatus
from importlib.util import find_spec
from typing import Any, Final, NamedTuple, Self

from skypane.addresses import has_secret
from skypane.naming import instead, shortened
from skypane.runtime.environment import held, is_named
from skypane.types import ConfigError

_PLAIN: Final = (
    "url", "ssl.ca.location", "ssl.certificate.location", "ssl.key.location", "basic.auth.credentials.source",
    "bearer.auth.credentials.source", "bearer.auth.logical.cluster", "bearer.auth.identity.pool.id",
    "bearer.auth.issuer.endpoint.url", "bearer.auth.client.id", "bearer.auth.scope",
)  # fmt: skip
"""Options of the client that hold no secret."""
_SECRET: Final = (
    "basic.auth.user.info", "bearer.auth.token", "bearer.auth.client.secret", "ssl.key.password", "proxy",
)  # fmt: skip
_FRAME: Final = struct.Struct(">bI")
_LARGEST: Final = (1 << 31) - 1
"""The largest identifier that registries give."""
_UNKNOWN: Final = frozenset({40401, 40402, 40403})
"""The registry's own codes for a subject, a version and a schema that it does not have; a wrong URL has none."""
_REMEMBERED: Final = 30.0
"""Seconds for which a schema that the registry does not have is not requested again."""
_REFUSED: Final = frozenset({401, 403, 404})
_REMEDY: Final = "set it before the Spark session is started"


class UnreadableMessageError(Exception):
    """Why a message cannot be decoded."""


class UnreadableSchemaError(UnreadableMessageError):
    """Why no message of a schema can be decoded."""


class Framed(NamedTuple):
    """A message without its frame: the identifier of its writer's schema, and its content."""

    schema: int
    content: bytes

    @classmethod
    def of(cls, value: bytes) -> Self:
        """Return a message without its frame; raise UnreadableMessageError if it has none."""
        if len(value) < _FRAME.size or value[0] != 0:
            raise UnreadableMessageError(
                "it does not begin with a byte 0 and the identifier of a schema, as clients of a registry write it"
            )
        identifier = _FRAME.unpack_from(value)[1]
        if identifier > _LARGEST:
            raise UnreadableMessageError(
                f"it names the schema {identifier}, but a registry gives none above {_LARGEST:,}"
            )
        return cls(identifier, value[_FRAME.size :])


@dataclass(frozen=True, slots=True)
class Registry:
    """A schema registry: options of its client, url first ("$NAME" is an environment variable), and a timeout in seconds."""

    options: tuple[tuple[str, str], ...] = field(repr=False)
    timeout: float = 10.0

    @classmethod
    def of(cls, given: object, topic: str, timeout: float) -> Registry:
        """Return the registry that a text, its URL, or a mapping describes; raise ConfigError if it is invalid."""
        options = {"url": given} if isinstance(given, str) else given
        if not isinstance(options, Mapping) or "url" not in options:
            raise ConfigError(f"topic {topic}: registry must be the URL of a schema registry, or a mapping with url")
        for key in options:
            if key not in (*_PLAIN, *_SECRET):
                raise ConfigError(
                    f"topic {topic}: registry has no option {key!r}; {instead(str(key), [*_PLAIN, *_SECRET])}"
                )
        texts = {key: str(value) for key, value in options.items()}
        _check_url(texts["url"], f"topic {topic}")
        for package in ("httpx2", "fastavro", "google.protobuf"):
            _check(package, topic)
        return cls(tuple(sorted(texts.items())), timeout)

    @property
    def url(self) -> str:
        return dict(self.options)["url"]

    def plain(self, topic: str) -> dict[str, str]:
        """Return the options as a mapping for JSON; raise ConfigError for secrets, because Spark's plans show it."""
        for key, value in self.options:
            if key in _SECRET and not is_named(value):
                raise ConfigError(
                    f"topic {topic}: option {key} of the registry would be shown in Spark's plan; give the name of an "
                    f'environment variable that holds it, "$NAME", or list the inputs in a file'
                )
        return dict(self.options)

    def resolved(self) -> Registry:
        """Return the registry with environment variables replaced; raise ConfigError for variables that are not set."""
        options = tuple(
            (key, held(text, f"option {key} of the registry", os.environ, _REMEDY)) for key, text in self.options
        )
        _check_url(dict(options)["url"], f"registry {self.url}")
        return Registry(options, self.timeout)


def _check_url(url: str, where: str) -> None:
    """Raise ConfigError if a URL has a password, which errors and logs would repeat."""
    if has_secret(url):
        raise ConfigError(f'{where}: the url of the registry has a password; give it as basic.auth.user.info: "$NAME"')


def _check(package: str, topic: str) -> None:
    if find_spec(package.partition(".")[0]) is None or find_spec(package) is None:
        raise ConfigError(
            f"topic {topic}: a registry needs the package {package}, which is not installed: "
            "pip install 'skypane[schema-registry]'"
        )


class RegistryClient:
    """This process's client of a registry."""

    def __init__(self, registry: Registry) -> None:
        from confluent_kafka.schema_registry import SchemaRegistryClient  # noqa: PLC0415 - an extra

        self.registry = registry
        #: what the registry does not have, and until when it is not requested again
        self._unknown: dict[str, float] = {}
        try:
            self.client = SchemaRegistryClient({**dict(registry.options), "timeout": registry.timeout})
        except (OSError, ValueError, TypeError) as error:  # a file of a certificate, an option, its value
            raise ConfigError(f"options of the registry {registry.url}: {shortened(str(error))}") from None

    def schema(self, identifier: int, kind: str, form: str | None = None) -> Any:
        """Return the schema with an identifier, whose kind must be `kind` (AVRO, PROTOBUF), in a format of the registry.

        Raises UnreadableSchemaError if there is none, or one of another kind; ConfigError if the registry refuses to
        answer, and TimeoutError if it does not answer.
        """
        found = self._asked(lambda: self.client.get_schema(identifier, fmt=form), f"schema {identifier}")
        if (found.schema_type or "AVRO") != kind:
            raise UnreadableSchemaError(f"its schema {identifier} is of {found.schema_type}, and not of {kind}")
        return found

    def referred(self, reference: Any, form: str | None = None) -> Any:
        """Return the schema to which another one refers."""
        return self._asked(
            lambda: self.client.get_version(reference.subject, reference.version, True, form),  # noqa: FBT003 - by place only
            f"version {reference.version} of {reference.subject}",
        ).schema

    def _asked(self, ask: Any, what: str) -> Any:
        from confluent_kafka.schema_registry.error import SchemaRegistryError  # noqa: PLC0415

        now, unknown = time.monotonic(), UnreadableSchemaError(f"the registry {self.registry.url} has no {what}")
        self._unknown = {one: until for one, until in self._unknown.items() if until > now}
        if what in self._unknown:
            raise unknown
        try:
            return ask()
        except SchemaRegistryError as error:
            if error.error_code in _UNKNOWN:
                self._unknown[what] = now + _REMEMBERED
                raise unknown from None
            if error.http_status_code in _REFUSED:
                wrong = "url" if error.http_status_code == HTTPStatus.NOT_FOUND else "login"
                raise ConfigError(
                    f"the registry {self.registry.url} refuses {what} ({error.http_status_code}: "
                    f"{shortened(str(error.error_message))}); check the {wrong} in the options of registry"
                ) from None
            raise self._silent(what, str(error)) from error
        except Exception as error:
            raise self._silent(what, str(error) or type(error).__name__) from error

    def _silent(self, what: str, why: str) -> TimeoutError:
        return TimeoutError(
            f"the registry {self.registry.url} does not give {what}, which a started batch needs: {shortened(why)}; restart "
            "the query when it answers"
        )


@cache
def cached_client(registry: Registry) -> RegistryClient:
    """Return this process's client of a registry, created at the first call."""
    return RegistryClient(registry)
