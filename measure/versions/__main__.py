"""Try settings and put the results into docs/versions.md: `python -m measure.versions [NAME ...]`."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from datetime import UTC, datetime
from typing import Final

from measure.versions.kept import Kept
from measure.versions.settings import SETTINGS
from measure.versions.trial import PACKAGES, Trial, TrialError, tried
from skypane.wording import seconds

NAMES: Final = [setting.name for setting in SETTINGS]
TABLE: Final = Kept("versions", ("setting", "Python", "Java", *PACKAGES, "core tests", "took", "on"))


def main() -> int:
    """Try the settings that were named, or all; return 1 if tests failed in one, or one could not be tried."""
    parser = ArgumentParser(prog="make matrix", description="Runs the core tests in settings of other versions.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; without one, all")
    wanted = parser.parse_args().names or NAMES
    if unknown := sorted(set(wanted) - set(NAMES)):
        parser.error(f"no setting {', '.join(unknown)}; there are {', '.join(NAMES)}")
    return max([_try(name) for name in wanted])


def row(name: str, trial: Trial, day: str) -> tuple[str, ...]:
    """Return the table's row of a setting that was tried on a day."""
    there = [trial.installed[part] for part in ("python", "java", *PACKAGES)]
    return name, *there, trial.result, seconds(trial.seconds), day


def _try(name: str) -> int:
    (setting,) = (each for each in SETTINGS if each.name == name)
    try:
        trial = tried(setting)
    except TrialError as error:
        print(error, file=sys.stderr, flush=True)
        return 1
    print(f"{name}: {trial.result}", flush=True)
    TABLE.record(NAMES, {name: row(name, trial, f"{datetime.now(UTC):%Y-%m-%d}")})
    return 0 if trial.passed else 1


if __name__ == "__main__":
    sys.exit(main())
