"""A real mosquitto: the machine's own, or Debian's package unpacked into a folder, without installing it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import pytest
from tests.checkout import ROOT
from tests.runtime.receiving.logs import until

_PACKAGES = ("mosquitto", "libcjson1", "libdlt2", "libev4", "libwebsockets17", "libwrap0", "libmosquitto1")


@cache
def _mosquitto() -> tuple[str, dict[str, str]]:
    """Return the program and what its environment needs; the test is skipped where there is none to be had."""
    for found in (shutil.which("mosquitto"), shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin")):
        if found is not None:
            return found, {}
    folder = ROOT / ".pytest_cache" / "mosquitto"
    program = folder / "usr" / "sbin" / "mosquitto"
    if not program.exists():
        if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
            pytest.skip("no mosquitto, and no Debian to have it from")
        folder.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as packages:
            got = subprocess.run(
                ["apt-get", "download", *_PACKAGES],  # noqa: S607 - found above
                cwd=packages,
                capture_output=True,
                text=True,
                check=False,
            )
            if got.returncode:
                pytest.skip(f"mosquitto cannot be downloaded: {got.stderr.strip().splitlines()[-1:]}")
            unpacked = Path(packages, "unpacked")
            for package in Path(packages).glob("*.deb"):
                subprocess.run(["dpkg-deb", "-x", package, unpacked], check=True)  # noqa: S607
            with suppress(OSError):  # another process of the tests was faster
                unpacked.rename(folder)
    libraries = ":".join(str(path) for path in (folder / "usr" / "lib").glob("*-linux-gnu"))
    return str(program), {"LD_LIBRARY_PATH": libraries}


@contextmanager
def mosquitto(folder: Path, port: int, *settings: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a broker that keeps what it holds in `folder`."""
    program, environment = _mosquitto()
    folder.mkdir(exist_ok=True)
    folder.chmod(0o777)
    config = folder / "mosquitto.conf"
    config.write_text("\n".join([f"listener {port} 127.0.0.1", "persistence true", f"persistence_location {folder}/",
                                 "user root", "max_queued_messages 0", *(settings or ["allow_anonymous true"]), ""]))  # fmt: skip
    with subprocess.Popen(
        [program, "-c", str(config)], env=os.environ | environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as broker:
        try:
            until(lambda: _listens(port), "mosquitto does not start")
            yield broker
        finally:
            broker.terminate()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
