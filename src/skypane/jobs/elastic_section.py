"""The `elastic` part of the `workers` section: the policy that changes the numbers of workers of a running stream.

The policies are those of control/elasticity/registry.py. Their fields are those of the option classes, which
document and check them.
"""

from __future__ import annotations

from dataclasses import fields
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self, TypeAlias, get_type_hints

from pydantic import Field, create_model, model_validator

from skypane.control.elasticity import registry
from skypane.control.elasticity.options import Elasticity
from skypane.jobs.fields import Cadence, Section, Time
from skypane.plugins import Registered

POLICIES: Final[dict[str, type[Elasticity]]] = {name.lower(): policy for name, policy in Registered(registry).items()}


class ElasticSection(Section):
    """A policy by its name, with the arguments of its option class."""

    policy: str

    @model_validator(mode="after")
    def _can_be_built(self) -> Self:
        self.build()
        return self

    def build(self) -> Elasticity:
        """Return the option, with its own defaults for all fields that the file leaves out."""
        return POLICIES[self.policy](**self.model_dump(exclude={"policy"}, exclude_unset=True))


def _part(policy: str, option: type[Elasticity]) -> type[ElasticSection]:
    kinds = get_type_hints(
        option, localns={"Duration": Time, "Cadence": Cadence}, include_extras=True
    )  # in a file a duration is a text
    taken: dict[str, Any] = {item.name: (kinds[item.name], item.default) for item in fields(option) if item.repr}
    taken["policy"] = (Literal[policy], ...)
    return create_model(f"{option.__name__}Section", __base__=ElasticSection, __doc__=option.__doc__, **taken)


if TYPE_CHECKING:
    AnyElastic: TypeAlias = ElasticSection
else:
    AnyElastic = Annotated[reduce(or_, (_part(*named) for named in POLICIES.items())), Field(discriminator="policy")]
