"""All mutants."""

from __future__ import annotations

from typing import Final

from tests.differential.mutants.engine import ENGINE
from tests.differential.mutants.kernels import KERNELS
from tests.differential.mutants.meanings import MEANINGS
from tests.differential.mutants.mutant import Mutant
from tests.differential.mutants.operators import OPERATORS
from tests.differential.mutants.progress import PROGRESS

MUTANTS: Final[tuple[Mutant, ...]] = (*KERNELS, *OPERATORS, *PROGRESS, *ENGINE, *MEANINGS)
