"""The `elastic` part of the `workers` section: what changes the numbers of workers while a stream runs."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, PositiveInt, model_validator

from skypane.control.elasticity.options import Elasticity, Fuzzy, Model, Threshold
from skypane.jobs.fields import Part, Time


class _Law(Part):
    """What all laws take; each law's class says what the fields mean."""

    max_workers: PositiveInt | None = None
    least_plq: PositiveInt = 1
    most_plq: PositiveInt | None = None
    least_wlq: PositiveInt = 1
    most_wlq: PositiveInt | None = None
    every: PositiveInt = 10
    hysteresis: float = 0.0
    cooldown: int = 1
    dry_run: bool = False

    @model_validator(mode="after")
    def _can_be_built(self) -> Any:
        self.build()
        return self

    def build(self) -> Elasticity:
        """Return the option itself."""
        raise NotImplementedError

    def _given(self) -> dict[str, Any]:
        """Return the fields that the file sets; the options know their own defaults."""
        return self.model_dump(exclude={"law"}, exclude_unset=True)


class FuzzyLaw(_Law):
    """Twelve rules of fuzzy logic."""

    law: Literal["fuzzy"]

    def build(self) -> Elasticity:
        return Fuzzy(**self._given())


class ModelLaw(_Law):
    """A forecast of the rate and the measured cost of a tuple."""

    law: Literal["model"]
    latency: Time = "2 seconds"
    headroom: float = 0.1

    def build(self) -> Elasticity:
        return Model(**self._given())


class ThresholdLaw(_Law):
    """Utilisation at a target."""

    law: Literal["threshold"]
    target: float = 0.8
    tolerance: float = 0.1

    def build(self) -> Elasticity:
        return Threshold(**self._given())


AnyElastic: TypeAlias = Annotated[FuzzyLaw | ModelLaw | ThresholdLaw, Field(discriminator="law")]
