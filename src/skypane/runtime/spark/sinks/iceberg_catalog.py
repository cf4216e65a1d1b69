"""The catalog of an Iceberg table, as a user configures it: its options, with secrets in environment variables."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skypane.runtime.environment import held, is_named
from skypane.runtime.spark.sinks.client_options import check_option, without_named
from skypane.types import ConfigError

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

_PLAIN: Final = re.compile(
    r"type|uri|warehouse|prefix|scope|audience|resource|oauth2-server-uri|rest\.(sigv4-enabled|signing-region|signing-name)"
    r"|rest-page-size|snapshot-loading-mode|scan-planning-mode|namespace-separator|table-name"
    r"|echo|pool_pre_ping|init_catalog_tables|schema_version|lock-check-[a-z-]+|hive\.[a-z0-9-]+"
    r"|(client|glue|s3|dynamodb)\.(region|profile-name|role-arn|role-session-name)"
    r"|glue\.(id|skip-archive|endpoint|max-retries|retry-mode)"
    r"|s3\.(endpoint|anonymous|resolve-region|connect-timeout|request-timeout|force-virtual-addressing|proxy-uri"
    r"|server-side-encryption|signer(\.uri|\.endpoint)?)"
    r"|adls\.(account-name|account-host|tenant-id|client-id|anon|(blob|dfs)-storage-(authority|scheme))"
    r"|gcs\.(project-id|access|consistency|cache-timeout|requester-pays|service\.host|default-bucket-location|version-aware)"
    r"|hdfs\.(host|port|user)|hf\.endpoint"
)
"""Properties of PyIceberg's catalogs and of their files that hold no secret; others are "$NAME"."""

_IN_URI: Final = frozenset("application_name connect_timeout host port sslmode sslrootcert timeout".split())
"""Parameters that a URI may have; it is shown in errors."""

_CODE: Final = re.compile(r".*-impl|auth(\..*)?")
"""Properties that name Python to import, which a job file must not; PyIceberg's configuration may have them."""

_RELATIVE: Final = re.compile(r"sqlite:///([^/:?][^?]*)")


@dataclass(frozen=True)
class CatalogPlace:
    """A catalog by its name and its options; properties of PyIceberg's own configuration for that name are added.

    options  properties of the catalog, such as uri; "$NAME" is an environment variable. A file of SQLite, and a
             warehouse beside it, are relative to the working folder of now
    """

    name: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise ConfigError(f"catalog must be the name of a catalog, got {self.name!r}")
        for name, value in self.options.items():
            self._check(name, value)
        object.__setattr__(self, "options", _absolute(self.options))
        if find_spec("pyiceberg") is None:
            raise ConfigError(
                "a table of Iceberg needs the package pyiceberg, which is not installed: pip install 'skypane[iceberg]'"
            )

    def __str__(self) -> str:
        uri = self.options.get("uri", "")
        return f"catalog {self.name}" + (f" at {uri}" if uri and not is_named(uri) else "")

    def _check(self, name: str, value: str) -> None:
        where = f"catalog {self.name}: option {name}"
        if _CODE.fullmatch(name):
            raise ConfigError(
                f"{where} names code, and options are texts and numbers: PyIceberg reads py-io-impl and auth from the "
                f"file .pyiceberg.yaml, under catalog, {self.name}"
            )
        check_option(where, value, is_plain=_PLAIN.fullmatch(name) is not None, parameters=_IN_URI)

    def opened(self) -> Catalog:
        """Return the catalog; raise ConfigError if an environment variable is not set."""
        from pyiceberg.catalog import load_catalog  # noqa: PLC0415 - an extra

        texts = {name: held(text, f"option {name} of {self}", os.environ) for name, text in self.options.items()}
        # A database may have ended a connection that was idle while the files of a batch were written.
        return load_catalog(self.name, **{"pool_pre_ping": "true", **texts})

    def reason(self, error: BaseException) -> str:
        """Return the text of an error in one line, without secrets: clients may show what they were given."""
        return without_named(" ".join(str(error).split()) or type(error).__name__, self.options)


def _absolute(options: Mapping[str, str]) -> dict[str, str]:
    """Return options in which the file of a catalog of SQLite, and the folder of its tables, do not depend on the working folder."""
    uri, warehouse = options.get("uri", ""), options.get("warehouse", "")
    if not uri.startswith("sqlite:"):
        return dict(options)
    fixed = _RELATIVE.sub(lambda found: f"sqlite:///{Path(found[1]).absolute()}", uri)
    if warehouse and ":" not in warehouse and not is_named(warehouse):
        warehouse = Path(warehouse).expanduser().absolute().as_uri()
    return {**options, "uri": fixed} | ({"warehouse": warehouse} if warehouse else {})
