"""WindFlow's side of benchmarks: programs of ours against its public API, compiled where its headers are.

The headers are not part of this package, and nothing fetches them: the folder of others' programs must have
windflow/wf (WindFlow 4) and fastflow/ff (FastFlow 3).
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

from measure.peers.places import MissingError, folder, shown, wanted

PROGRAMS: Final = Path(__file__).parent / "programs"
FLAGS: Final = (
    "-std=c++17",
    "-O3",
    "-march=native",
    "-DNDEBUG",
    # Threads wait for each other instead of spinning, on cores that the system chooses, behind queues with a bound:
    # a program has more threads than two cores can spin.
    "-DBLOCKING_MODE",
    "-DNO_DEFAULT_MAPPING",
    "-DFF_BOUNDED_BUFFER",
    "-pthread",
)


def headers() -> list[Path]:
    """Return the folders with headers, in the order in which the compiler looks; raise MissingError if one is not there."""
    what = "put the folder {} of {} there"
    wind = wanted(folder() / "windflow" / "wf" / "windflow.hpp", what.format("wf", "WindFlow 4"))
    fast = wanted(folder() / "fastflow" / "ff" / "ff.hpp", what.format("ff", "FastFlow 3"))
    return [wind.parent, fast.parents[1]]


def digest() -> str:
    """Return which headers these are, by the contents of both libraries: WindFlow has no macro with its version."""
    found = sha256()
    wind, fast = headers()
    for file in sorted([*wind.rglob("*.hpp"), *(fast / "ff").rglob("*.hpp")]):
        found.update(file.read_bytes())
    return f"headers {found.hexdigest()[:8]}"


def program(name: str, macros: Mapping[str, int] | None = None) -> Path:
    """Return a compiled program, which is compiled if it was not before; raise MissingError if it cannot be."""
    compiler = next(filter(None, map(shutil.which, (os.environ.get("CXX", "c++"), "g++", "clang++"))), None)
    if compiler is None:
        raise MissingError("there is no C++ compiler: install g++, or set CXX")
    command = [compiler, *FLAGS, *(f"-D{key}={value}" for key, value in (macros or {}).items())]
    command += [argument for place in headers() for argument in ("-isystem", str(place))]
    sources = [PROGRAMS / f"{name}.cpp", PROGRAMS / "records.hpp"]
    text = " ".join([*command, digest(), *(source.read_text(encoding="utf-8") for source in sources)])
    binary = folder() / "bin" / f"{name}-{sha256(text.encode()).hexdigest()[:12]}"
    if not binary.exists():
        binary.parent.mkdir(parents=True, exist_ok=True)
        draft = binary.with_suffix(f".{os.getpid()}")
        done = subprocess.run(  # noqa: S603 - our own program
            [*command, str(sources[0]), "-o", str(draft)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            first = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip())
            raise MissingError(shown(f"{name} does not compile against these headers: {first}"))
        draft.replace(binary)
    return binary
