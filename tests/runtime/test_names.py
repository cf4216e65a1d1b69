"""The slow tests name functions of the engine in strings: a renamed one is found here, not by the next night."""

from __future__ import annotations

import pytest
from tests.runtime import starts
from tests.runtime.scenarios import lines_of

from skypane.runtime.spark.engine import fencing, ledger, shell

INSTALL = "from tests.nature import places; places.install(print)"


def test_places_replace_methods_that_exist():
    assert lines_of("-c", INSTALL) == []


@pytest.mark.parametrize("name", sorted(starts.PLAIN))
def test_the_model_of_starts_knows_the_functions_of_the_engine(name: str):
    defined = {
        value.__qualname__
        for module in (fencing, ledger, shell)
        for owner in (module, *(kind for kind in vars(module).values() if isinstance(kind, type)))
        for value in vars(owner).values()
        if hasattr(value, "__qualname__")
    }
    assert name in defined | {"driver.<locals>.script"}
