#!/usr/bin/env python3
"""All of a release but the tag and the upload: `make release`.

    what is to be released     pyproject's version has a section of its own in CHANGELOG.md, and the tree is clean
    wheel, source distribution built, and checked by twine, those of the papers' package too
    the wheel                  installed into a bare environment, imported there, and asked what it thinks of the machine
    the source distribution    unpacked: it builds the same wheel, and passes its quick tests

Run by a Python that has `build` and `twine`. `--dependencies-of VENV` takes what the wheel needs from there, and downloads nothing.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SMOKE = """
import skypane as sp
import pyarrow as pa
assert sp.__version__ == {version!r}, sp.__version__
rows = pa.table({{"price": [3.0, 1.0, 2.0], "rating": [5.0, 1.0, 1.0]}})
query = sp.Skyline("price MIN, rating MAX")
assert query.lower(query.combine([query.lift(rows)])).num_rows == 2
"""


def main() -> int:
    """Do each step, saying which; return 1 with the reason at the first that fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dependencies-of", type=Path, metavar="VENV", help="use packages of that environment")
    parser.add_argument("--tests", default="make --no-print-directory quick", help="what runs in the unpacked sources")
    parser.add_argument("--not-clean", action="store_true", help="build what lies here, committed or not: to try this")
    options = parser.parse_args()
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    try:
        problem = unready(
            version, (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), clean=options.not_clean or is_clean()
        )
        if problem:
            raise SystemExit(f"not ready: {problem}")
        with tempfile.TemporaryDirectory(prefix="skypane-release-") as folder:
            released(version, Path(folder), options)
    except subprocess.CalledProcessError as error:
        print(f"failed: {' '.join(map(str, error.cmd))}", file=sys.stderr)
        return 1
    print(
        f"\ndist/ is what to upload. Then:\n    git tag -a v{version} -m 'skypane {version}' && git push origin v{version}"
    )
    return 0


def unready(version: str, changelog: str, *, clean: bool) -> str:
    """Return why this cannot be released; nothing if it can."""
    sections = re.findall(r"^## \[(.+?)\](?: - (\S+))?", changelog, re.MULTILINE)
    days = dict(sections)
    if version not in days:
        return f"CHANGELOG.md has no section [{version}]; it has {', '.join(days)}"
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", days[version]):
        return f"the section [{version}] of CHANGELOG.md has no day: write ## [{version}] - YYYY-MM-DD"
    if next((name for name in days if name != "Unreleased"), None) != version:
        return f"the newest section of CHANGELOG.md is not [{version}]"
    return "" if clean else "there are changes that are not committed"


def is_clean() -> bool:
    """Return whether all that is here is committed."""
    return not subprocess.run(
        ["git", "status", "--porcelain"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()


def released(version: str, folder: Path, options: argparse.Namespace) -> None:
    """Build into dist/, and try what was built."""
    dist = ROOT / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    said("building wheel and source distribution")
    run(sys.executable, "-m", "build", "--outdir", dist, ROOT)
    wheel, sources = dist / f"skypane-{version}-py3-none-any.whl", dist / f"skypane-{version}.tar.gz"
    said("checking what they say of themselves")
    run(sys.executable, "-m", "build", "--outdir", dist, ROOT / "papers")
    run(sys.executable, "-m", "twine", "check", "--strict", *sorted(dist.iterdir()))
    said("installing the wheel into a bare environment")
    tried(wheel, version, folder / "bare", options.dependencies_of)
    said("building the wheel from the source distribution")
    with tarfile.open(sources) as archive:
        archive.extractall(folder, filter="data")
    unpacked = folder / f"skypane-{version}"
    run(sys.executable, "-m", "build", "--wheel", "--outdir", folder / "again", unpacked)
    if content(folder / "again" / wheel.name) != content(wheel):
        raise SystemExit("the source distribution makes another wheel than the checkout")
    said("running the quick tests of the source distribution")
    environment = {**os.environ, "PYTHONPATH": str(unpacked / "src")}
    run(*options.tests.split(), f"VENV={ROOT / '.venv'}", folder=unpacked, environment=environment)


def tried(wheel: Path, version: str, bare: Path, dependencies: Path | None) -> None:
    """Install a wheel into an environment with nothing but what it needs, and use it."""
    venv.create(bare, with_pip=True)
    python = bare / "bin" / "python"
    if dependencies is None:
        run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel)
    else:
        (packages,) = (bare / "lib").glob("python*/site-packages")
        (there,) = (dependencies.resolve() / "lib").glob("python*/site-packages")
        run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", wheel)
        (packages / "dependencies.pth").write_text(
            f"{there}\n", encoding="utf-8"
        )  # not what is installed there in place
    run(python, "-c", SMOKE.format(version=version), folder=bare)
    run(bare / "bin" / "skypane", "--version", folder=bare)
    # Whatever it finds missing on this machine it says; that it can look is what the wheel is tried for.
    told = subprocess.run([bare / "bin" / "skypane", "doctor"], cwd=bare, check=False, capture_output=True, text=True)
    print(told.stdout)
    if told.returncode not in {0, 1} or "Traceback" in told.stderr:
        raise SystemExit(f"skypane doctor of the wheel fails:\n{told.stderr}")


def content(wheel: Path) -> dict[str, int]:
    """Return the files of a wheel, with their checksums."""
    with zipfile.ZipFile(wheel) as archive:
        return {entry.filename: entry.CRC for entry in archive.infolist()}


def said(step: str) -> None:
    """Say what comes next."""
    print(f"--- {step}", flush=True)


def run(*command: str | Path, folder: Path = ROOT, environment: dict[str, str] | None = None) -> None:
    """Run a command; CalledProcessError if it fails."""
    if environment is None:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([*map(str, command)], cwd=folder, env=environment, check=True)


if __name__ == "__main__":
    sys.exit(main())
