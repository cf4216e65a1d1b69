"""The `elastic` part of the `workers` section: what changes the numbers of workers while a stream runs.

Its laws are those of control/elasticity/registry.py, their fields those of the options, which say what they mean, and check
them.
"""

from __future__ import annotations

from dataclasses import fields
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self, TypeAlias, get_type_hints

from pydantic import Field, create_model, model_validator

from skypane.control.elasticity import registry
from skypane.control.elasticity.options import Elasticity
from skypane.jobs.fields import Cadence, Part, Time
from skypane.naming import registered

LAWS: Final[dict[str, type[Elasticity]]] = {name.lower(): law for name, law in registered(registry).items()}


class ElasticPart(Part):
    """A law by its name, and what its option takes."""

    law: str

    @model_validator(mode="after")
    def _can_be_built(self) -> Self:
        self.build()
        return self

    def build(self) -> Elasticity:
        """Return the option itself: it knows its own defaults."""
        return LAWS[self.law](**self.model_dump(exclude={"law"}, exclude_unset=True))


def _part(law: str, option: type[Elasticity]) -> type[ElasticPart]:
    kinds = get_type_hints(
        option, localns={"Duration": Time, "Cadence": Cadence}, include_extras=True
    )  # in a file it is a text
    taken: dict[str, Any] = {item.name: (kinds[item.name], item.default) for item in fields(option) if item.repr}
    taken["law"] = (Literal[law], ...)
    return create_model(f"{option.__name__}Part", __base__=ElasticPart, __doc__=option.__doc__, **taken)


if TYPE_CHECKING:
    AnyElastic: TypeAlias = ElasticPart
else:
    AnyElastic = Annotated[reduce(or_, (_part(*named) for named in LAWS.items())), Field(discriminator="law")]
