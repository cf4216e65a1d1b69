"""A server of S3's API, run as a program: moto, with buckets in memory. It prints its port, and serves until it is killed.

It answers one request after the other: moto looks at a condition and writes in two steps, between which another thread
could write.
"""

from __future__ import annotations

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server


def main() -> None:
    server = make_server("127.0.0.1", 0, DomainDispatcherApplication(create_backend_app), threaded=False)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
