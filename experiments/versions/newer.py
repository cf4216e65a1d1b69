"""What this environment has in another version than the lock: `python -m experiments.versions.newer`."""

from __future__ import annotations

from importlib.metadata import distributions

from packaging.utils import canonicalize_name

from experiments.versions.lock import DEVELOPMENT, lines, versions


def differences(locked: dict[str, str], installed: dict[str, str]) -> list[str]:
    """Return a line for each package that is installed in another version than the locked one, or not locked."""
    return [
        f"{name} {locked.get(name, 'not locked')} -> {version}"
        for name, version in sorted(installed.items())
        if locked.get(name) != version
    ]


def main() -> None:
    """Print the differences, or that there are none."""
    installed = {canonicalize_name(each.name): each.version for each in distributions()}
    ours = {name: version for name, version in installed.items() if name not in {"skypane", "pip", "setuptools"}}
    print("\n".join(differences(versions(lines(DEVELOPMENT)), ours)) or "the lock has the newest of everything")


if __name__ == "__main__":
    main()
