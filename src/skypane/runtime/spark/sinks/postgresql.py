"""PostgreSQL, by psycopg."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import pyarrow as pa

from skypane.addresses import without_secrets
from skypane.runtime.environment import check_named, held
from skypane.runtime.spark.sinks.database import whole_number_bits
from skypane.types import ConfigError

_PLAIN: Final = frozenset(
    "application_name channel_binding client_encoding connect_timeout gssencmode hostaddr keepalives keepalives_count "
    "keepalives_idle keepalives_interval krbsrvname load_balance_hosts options require_auth service sslcert "
    "sslcertmode sslcrl sslkey sslmode sslnegotiation sslrootcert sslsni target_session_attrs tcp_user_timeout "
    "user".split()
)
"""Options of the client that hold no secret; others are "$NAME", a variable of the environment."""

_IN_URL: Final = _PLAIN | {"host", "port", "dbname", "ssl"}
"""Parameters that a URL may have; it is shown in logs and errors."""

_CREATION: Final = int.from_bytes(b"skypane")
"""The number of the lock of those that create tables: CREATE TABLE IF NOT EXISTS fails if two do so at once."""

_LIMITS: Final = (
    "SELECT set_config('idle_in_transaction_session_timeout', %s, true), set_config('lock_timeout', %s, true)"
)
"""For this transaction only, so that a pooler's connection keeps nothing of it."""

_NAMES: Final = {
    pa.bool_(): "boolean",
    pa.float32(): "real",
    pa.float64(): "double precision",
    pa.date32(): "date",
}
_TESTS: Final = (
    (pa.types.is_string, "text"),
    (pa.types.is_large_string, "text"),
    (pa.types.is_binary, "bytea"),
    (pa.types.is_large_binary, "bytea"),
    (pa.types.is_nested, "jsonb"),
)


@dataclass(frozen=True)
class PostgreSql:
    """A database of PostgreSQL.

    address  postgresql://host:port/name
    options  parameters of the connection; "$NAME" is an environment variable
    timeout  seconds that the server may take to connect, and that a transaction may wait for another one. Without a
             statement for this time, as when its driver is suspended, a transaction is ended by the server; but not
             while the server waits for the rest of execute_many()
    """

    address: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    timeout: float = 30.0

    mark = "%s"
    lock = " FOR UPDATE"
    has_schemas = True
    longest_name = 63

    def __post_init__(self) -> None:
        place = urlsplit(self.address)
        named = ["password"] if place.password is not None else []
        hidden = [*named, *sorted(parse_qs(place.query, keep_blank_values=True).keys() - _IN_URL)]
        if hidden:
            raise ConfigError(
                f"url {without_secrets(self.address.partition('?')[0])} has a {hidden[0]}, which logs and reports would "
                f'show: give it as an option, options={{"{hidden[0]}": "$NAME"}}, with the name of an environment variable'
            )
        if not place.path.strip("/"):
            raise ConfigError(f"url must name a database, postgresql://host:5432/name, got {self.address!r}")
        for name, value in self.options.items():
            if name not in _PLAIN:
                check_named(value, f"url {self.address}: option {name}")
        if find_spec("psycopg") is None:
            raise ConfigError(
                "PostgreSQL needs the package psycopg, which is not installed: pip install 'skypane[postgresql]'"
            )

    def __str__(self) -> str:
        return self.address

    @property
    def error(self) -> type[Exception]:
        from psycopg import Error  # noqa: PLC0415 - an extra

        return Error

    @property
    def passing_errors(self) -> tuple[type[Exception], ...]:
        from psycopg import InternalError, OperationalError  # noqa: PLC0415

        return OperationalError, InternalError  # the second is that of a transaction that the server has ended

    def lacks_unique_key(self, error: Exception) -> bool:
        from psycopg.errors import InvalidColumnReference  # noqa: PLC0415

        return isinstance(error, InvalidColumnReference)

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        from psycopg import connect  # noqa: PLC0415

        seconds = max(1, round(self.timeout))
        texts = {name: held(text, f"option {name}", os.environ) for name, text in self.options.items()}
        # The last one lets a client notice that the server's machine is gone while it waits for a reply.
        options = {"connect_timeout": seconds, "tcp_user_timeout": seconds * 1000, "keepalives_idle": seconds, **texts}
        # Statements have no names, which the connections of a pooler would keep for the next batch.
        with connect(self.address, prepare_threshold=None, **options) as connection, connection.cursor() as cursor:  # type: ignore[arg-type]
            cursor.execute(_LIMITS, (f"{seconds}s", f"{2 * seconds}s"))
            yield cursor
            connection.commit()  # the end of the block is silent if the connection has ended, and nothing is committed

    def execute_many(self, cursor: Any, statement: str, values: Sequence[tuple[Any, ...]]) -> None:
        cursor.executemany(statement, values)
        # The client may end these with a flush, after which the server does not count idle time until the next statement.
        cursor.execute("SELECT 1")

    def lock_creation(self, cursor: Any) -> None:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", (_CREATION,))

    def columns(self, cursor: Any, table: str) -> list[str]:
        listed = "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped"
        return [name for (name,) in cursor.execute(listed, (_exact(table),))]

    def namesakes(self, cursor: Any, name: str) -> list[str]:
        found = (
            "SELECT nspname FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE relname = %s "
            "AND relkind IN ('r', 'p') AND has_schema_privilege(nspname, 'USAGE') AND has_table_privilege(pg_class.oid, 'SELECT')"
        )
        return [f"{schema}.{name}" for (schema,) in cursor.execute(found, (name,)).fetchall()]

    def is_same(self, cursor: Any, one: str, other: str) -> bool:
        return bool(
            cursor.execute("SELECT to_regclass(%s) = to_regclass(%s)", (_exact(one), _exact(other))).fetchone()[0]
        )

    def quoted(self, name: str) -> str:
        return '"{}"'.format(name.replace('"', '""').replace("%", "%%"))

    def type_of(self, kind: pa.DataType) -> str | None:
        bits = whole_number_bits(kind)
        if bits is not None:
            return "smallint" if bits <= 16 else "integer" if bits <= 32 else "bigint" if bits <= 64 else "numeric(20)"
        if pa.types.is_timestamp(kind):
            return "timestamp" if kind.tz is None else "timestamptz"
        if pa.types.is_decimal(kind):
            return f"numeric({kind.precision}, {kind.scale})"
        return _NAMES.get(kind) or next((name for test, name in _TESTS if test(kind)), None)


def _exact(table: str) -> str:
    """Return a name, or schema.table, as the server reads it without folding its letters."""
    return ".".join('"{}"'.format(part.replace('"', '""')) for part in table.split("."))
