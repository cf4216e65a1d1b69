"""An authority that lives for a test, and certificates that it has signed, made by openssl."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


def authority(folder: Path, name: str = "ca") -> Path:
    """Make an authority; return its certificate."""
    _openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
             "-subj", f"/CN={name}", "-addext", "keyUsage=critical,keyCertSign",
             "-keyout", str(folder / f"{name}.key"), "-out", str(folder / f"{name}.pem"))  # fmt: skip
    return folder / f"{name}.pem"


def signed(ca: Path, name: str) -> tuple[Path, Path]:
    """Return certificate and key of 127.0.0.1, signed by an authority."""
    key, certificate = ca.with_name(f"{name}.key"), ca.with_name(f"{name}.pem")
    _openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
             "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE",
             "-CA", str(ca), "-CAkey", str(ca.with_suffix(".key")), "-keyout", str(key), "-out", str(certificate))  # fmt: skip
    return certificate, key


def _openssl(*arguments: str) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("TLS IS NOT TESTED IN THIS RUN: there is no openssl to make certificates with")
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)  # noqa: S607 - found above
