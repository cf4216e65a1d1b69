"""The slow tests name functions of the engine in strings: a renamed one is found here, not by the next night."""

from __future__ import annotations

from types import ModuleType

import pytest
from tests.runtime import continuous_driver, driver, starts

from skypane.runtime.spark.engine import fencing, ledger, shell


def test_crashes_replace_methods_that_exist(monkeypatch: pytest.MonkeyPatch):
    looked: list[str] = []

    def look(owner: type | ModuleType, name: str, _: object) -> None:
        getattr(owner, name)
        looked.append(name)

    for module in (driver, continuous_driver):
        monkeypatch.setattr(module, "replace_method", look)
    for crash in (driver.CRASHES | driver.SLEEPS | continuous_driver.CRASHES).values():
        crash()
    assert {"commit", "move", "write", "place_rows"} <= {*looked}


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
