"""Runs tests as other people's machines run them: `make anywhere` does so with those that start no Java.

Two copies of the checkout, in folders with a space in their names, run them at the same time, each in an order of its own:
in one it is Kathmandu's time, the locale is C and the home does not exist; the other has no home at all, and its user no name.
Arguments are pytest's.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.checkout import ROOT

_LEFT_OUT: Final = (".git", ".venv*", ".hypothesis", ".*_cache", "dist")
_NAMELESS: Final = ("unshare", "--user", "--map-user=54321", "--map-group=54321")
"""Runs a command as a user whom the system has no entry for, who may do what this one may."""


@dataclass(frozen=True)
class Place:
    """A folder of this name, with these variables (None: not set); what is run there is run by `by`."""

    folder: str
    variables: Mapping[str, str | None]
    by: Sequence[str] = ()

    def start(self, within: Path, command: Sequence[str]) -> subprocess.Popen[bytes]:
        """Copy the checkout, with the kernels that are compiled in it, and start `command` in the copy; it says what to a log."""
        copy = within / self.folder / "skypane"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*_LEFT_OUT), symlinks=True)
        path = [str(copy / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
        changed = {"PYTHONPATH": os.pathsep.join(path), **self.variables}
        kept = {name: value for name, value in os.environ.items() if name not in changed and not name.startswith("LC_")}
        with self.log(within).open("wb") as log:
            return subprocess.Popen(
                [*self.by, *command],
                cwd=copy,
                env=kept | {name: value for name, value in changed.items() if value is not None},
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def log(self, within: Path) -> Path:
        return within / f"{self.folder}.log"


PLACES: Final = (
    Place("far away", {"TZ": "Asia/Kathmandu", "LANG": "C", "HOME": "/nonexistent"}),
    Place("no home", {"HOME": None, "LOGNAME": None, "USER": None}, _NAMELESS),
)


def main(arguments: Sequence[str]) -> int:
    """Run them; print the output of failed tests, and return 1 then."""
    with tempfile.TemporaryDirectory(prefix="skypane-anywhere-") as within:
        runs = [place.start(Path(within), _pytest(seed, arguments)) for seed, place in enumerate(PLACES, 1)]
        failed = False
        for place, run in zip(PLACES, runs, strict=True):
            code = run.wait()
            output = place.log(Path(within)).read_text(encoding="utf-8", errors="replace").rstrip()
            closing = output.rpartition("\n")[2]
            bad = code != 0 or " passed" not in closing  # one that ends without a word has ended too soon
            failed |= bad
            print(f"{place.folder} ({dict(place.variables)}):", f"code {code}\n{output}" if bad else closing)
    return int(failed)


def _pytest(seed: int, arguments: Sequence[str]) -> list[str]:
    order = ["-p", "pytest_randomly", f"--randomly-seed={seed}", "--randomly-dont-reset-seed"]
    return [sys.executable, "-m", "pytest", "-q", *order, *arguments]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
