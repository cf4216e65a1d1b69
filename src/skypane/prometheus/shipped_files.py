"""Files that come with the package: a configuration and alert rules of Prometheus, and a dashboard of Grafana."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Final

from skypane.types import ConfigError

NAMES: Final = ("prometheus.yaml", "alerts.yaml", "dashboard.json")


def text(name: str) -> str:
    """Return the text of a file."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def write(folder: Path) -> list[Path]:
    """Write all files into a folder; return their paths. Raise ConfigError if one is there or cannot be written."""
    paths = [folder / name for name in NAMES]
    for path in paths:
        if path.exists():
            raise ConfigError(f"{path} is there already: remove it, or choose another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path in paths:
            path.write_text(text(path.name), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write to {folder}: {error.strerror or error}; choose another folder") from error
    return paths
