"""The HTTP endpoint from which Prometheus reads the metrics of running queries."""

from __future__ import annotations

import errno
import re
from typing import TYPE_CHECKING, Final, Self

from skypane.runtime.spark.handle import StreamHandle
from skypane.types import ConfigError

if TYPE_CHECKING:
    from skypane.prometheus.exporter import Exporter

DEFAULT: Final = "127.0.0.1:9464"
"""On this machine only, because the port has no login."""
ANYWHERE: Final = "0.0.0.0"  # noqa: S104 - requested by an address without a host
_ADDRESS: Final = re.compile(r"(?P<host>\[[\da-fA-F:.]+\]|[^:\[\]]*):(?P<port>\d{1,5})")


class MetricsServer:
    """Serves the metrics of queries to Prometheus, at `url`, until close(): a query that has ended is shown as such.

    >>> with sp.MetricsServer("127.0.0.1:0") as server:
    ...     server.url.startswith("http://127.0.0.1:")
    True
    """

    def __init__(self, address: str = DEFAULT) -> None:
        """Listen at `address`, as serve_metrics()."""
        host, port = _host_and_port(address)
        self._exporter = _exporter()
        from skypane.prometheus.bounded_server import BoundedServer  # noqa: PLC0415 - of an extra, which _exporter() has imported

        try:
            self._http = BoundedServer(host.strip("[]") or ANYWHERE, port, self._exporter.registry)
        except (OSError, UnicodeError) as error:  # UnicodeError: the host cannot be a name
            reason = getattr(error, "strerror", None) or error
            raise ConfigError(f"metrics cannot be served at {address}: {reason}; {_remedy(error)}") from error
        #: where the metrics are, on this machine
        self.url = f"http://{host or 'localhost'}:{self._http.server_port}/metrics"

    def watch(self, handle: StreamHandle, *, name: str | None = None) -> None:
        """Serve the metrics of a query, too, under the label stream=`name`; those batches count that began after this server.

        Without `name`, it is that of the query in Spark, or of its checkpoint's folder. A query with the checkpoint of an
        earlier one continues its counters. Raises ConfigError if another one has the name.
        """
        self._exporter.streams.watch(handle, name)

    def close(self) -> None:
        """Free the port; batches that are committed later are not counted any more."""
        self._http.close()
        self._exporter.streams.close()

    def __repr__(self) -> str:
        return f"<metrics of {', '.join(self._exporter.streams.names) or 'no query yet'} at {self.url}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def serve_metrics(*handles: StreamHandle, address: str = DEFAULT) -> MetricsServer:
    """Serve the metrics of running queries to Prometheus; return the server, which watch()es further ones.

    address   "host:port"; "127.0.0.1:9464", the default, is reached from this machine only, ":9464" at all of its addresses;
              port 0 is a free one, which `url` of the server names

    Batches count that begin from now on; docs/monitoring.md lists the metrics. Needs the package
    prometheus-client, of `pip install 'skypane[prometheus]'`. Raises ConfigError if the port is taken.

    >>> server = sp.serve_metrics(address="127.0.0.1:0")  # server.watch(job.start()) adds a query
    >>> server.url
    'http://127.0.0.1:.../metrics'
    >>> server.close()
    """
    server = MetricsServer(address)
    try:
        for handle in handles:
            server.watch(handle)
    except BaseException:
        server.close()
        raise
    return server


def _host_and_port(address: str) -> tuple[str, int]:
    found = _ADDRESS.fullmatch(address)
    if found is None or int(found["port"]) >= 1 << 16:
        raise ConfigError(f"the address of metrics must be host:port or :port, such as :9464, got {address!r}")
    return found["host"], int(found["port"])


def _remedy(error: OSError | UnicodeError) -> str:
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        return "choose another port, or end what listens there"
    if isinstance(error, PermissionError):
        return "choose a port from 1024 on, which needs no rights of an administrator"
    return "choose an address of this machine"


def _exporter() -> Exporter:
    try:
        from skypane.prometheus.exporter import Exporter  # noqa: PLC0415 - its package is an extra
    except ModuleNotFoundError as error:
        raise ConfigError(
            "metrics for Prometheus need prometheus-client, which is not installed: pip install 'skypane[prometheus]'"
        ) from error
    return Exporter()
