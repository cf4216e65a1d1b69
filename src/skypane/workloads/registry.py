"""Construction of workloads by name from plain parameters.

>>> made = workload("map2", rate=1000, dispersion=2000, d=2, delay="uniform", delay_mean="200 ms", rows=5)
>>> made.table().column_names
['time', 'arrival', 'source', 'key', 'c0', 'c1']
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from skypane.types import ConfigError
from skypane.workloads.arrivals.fleets import BurstyFleet, ConstantFleet, FluctuatingFleet
from skypane.workloads.arrivals.map2 import Map2
from skypane.workloads.arrivals.plain import Constant, Poisson
from skypane.workloads.arrivals.profiles import OnOff, RandomWalk, Steps
from skypane.workloads.arrivals.selfsimilar import ParetoSlots, SelfSimilar
from skypane.workloads.arrivals.sent import Fleet
from skypane.workloads.cabs import Cabs
from skypane.workloads.content.drift import Drifting
from skypane.workloads.content.keys import Zipf
from skypane.workloads.content.points import DISTRIBUTIONS, Classic
from skypane.workloads.content.senders import Presence, Shared
from skypane.workloads.disorder.delays import (
    EmpiricalDelay,
    ExponentialDelay,
    LognormalDelay,
    NoDelay,
    ParetoDelay,
    UniformDelay,
)
from skypane.workloads.disorder.held import HeldBack
from skypane.workloads.meters import Meters
from skypane.workloads.parameters import accepted, build
from skypane.workloads.stream import Stream
from skypane.workloads.workload import Workload


class NamedWorkload(NamedTuple):
    """A config class, and the parameters that the name fixes."""

    config: type[Any]
    settled: Mapping[str, Any] = {}


ARRIVALS: Final[Mapping[str, NamedWorkload]] = {
    "constant": NamedWorkload(Constant),
    "poisson": NamedWorkload(Poisson),
    "map2": NamedWorkload(Map2),
    "self-similar": NamedWorkload(SelfSimilar),
    "pareto-slots": NamedWorkload(ParetoSlots),
    "random-walk": NamedWorkload(RandomWalk),
    "steps": NamedWorkload(Steps),
    "on-off": NamedWorkload(OnOff),
    "constw": NamedWorkload(ConstantFleet),
    "psfcw": NamedWorkload(FluctuatingFleet, {"shape": "step", "total": "constant"}),
    "ptfcw": NamedWorkload(FluctuatingFleet, {"shape": "trend", "total": "constant"}),
    "sfvar": NamedWorkload(FluctuatingFleet, {"shape": "step", "total": "varying"}),
    "tfvar": NamedWorkload(FluctuatingFleet, {"shape": "trend", "total": "varying"}),
    "bursty": NamedWorkload(BurstyFleet),
}
POINTS: Final[Mapping[str, NamedWorkload]] = {
    **{kind: NamedWorkload(Classic, {"kind": kind}) for kind in DISTRIBUTIONS},
    "drifting": NamedWorkload(Drifting),
}
DELAYS: Final[Mapping[str, NamedWorkload]] = {
    "none": NamedWorkload(NoDelay),
    "uniform": NamedWorkload(UniformDelay),
    "exponential": NamedWorkload(ExponentialDelay),
    "pareto": NamedWorkload(ParetoDelay),
    "lognormal": NamedWorkload(LognormalDelay),
    "empirical": NamedWorkload(EmpiricalDelay),
    "held-back": NamedWorkload(HeldBack),
}

SCENES: Final[Mapping[str, type[Stream]]] = {"cabs": Cabs, "meters": Meters}
"""Complete streams with columns of their own, which are not composed of arrivals, points, keys and delays."""

_OF_ALL: Final = ("seed", "rows", "length", "start")
_UNPREFIXED: Final = ("d", "points", "delay", "sources", "keys")
_PARTS: Final = ("points", "keys", "delay", "source", "presence")


def workload(arrivals: str, **parameters: Any) -> Stream:
    """Return the scene named `arrivals`, or the workload with the arrivals of that name.

    A scene (see SCENES) has parameters of its own; all other workloads take those of composed(). Numbers may be passed
    as texts.
    """
    if arrivals in SCENES:
        return build(SCENES[arrivals], parameters, f"workload {arrivals!r}")
    if arrivals not in ARRIVALS:
        raise ConfigError(f"workload: unknown {arrivals!r}; use one of {', '.join([*ARRIVALS, *SCENES])}")
    return composed(arrivals, **parameters)


def composed(arrivals: str, **parameters: Any) -> Workload:
    """Return the workload with the named arrivals; numbers may be passed as texts.

    A parameter without a prefix belongs to the arrivals (see ARRIVALS) or to the stream (seed, rows, length, start).
    All others are:

    d:                    number of criteria
    points:               a name in POINTS, with parameters points_... (points="drifting", points_period="1 minute")
    delay:                a name in DELAYS, with parameters delay_... (delay="uniform", delay_mean="200 ms");
                          "held-back" adds delays of a second kind: delay_usual="uniform", delay_usual_mean=...
    sources:              number of sources that share a single stream; source_exponent: how unequally
                          (a fleet takes `streams` instead)
    keys:                 number of keys; keys_exponent, keys_move_every, keys_move_by as in Zipf
    presence_...:         as in Presence

    Raises ConfigError, naming the parameter, if one is unknown, missing or out of range.
    """
    parameters = dict(parameters)
    _check_parts(arrivals, parameters)
    of_all = {name: parameters.pop(name) for name in _OF_ALL if name in parameters}
    parts = {part: _pop_prefixed(parameters, f"{part}_") for part in _PARTS}
    named = {"d": "points", "keys": "keys"}
    for name, part in named.items():
        if name in parameters:
            parts[part][name] = parameters.pop(name)
    points = _named(POINTS, "points", parameters.pop("points", "independent"), parts["points"])
    delays = _delays(parameters.pop("delay", "none"), parts["delay"])
    shares = {"streams": parameters.pop("sources")} if "sources" in parameters else {}
    made = _shared(arrivals, _named(ARRIVALS, "arrivals", arrivals, parameters), shares | parts["source"])
    rest = {
        "arrivals": made,
        "points": points,
        "delays": delays,
        "keys": build(Zipf, parts["keys"], "keys"),
        "presence": build(Presence, parts["presence"], "presence"),
    }
    return build(Workload, rest | of_all, "workload")


def _check_parts(arrivals: str, parameters: Mapping[str, Any]) -> None:
    """Raise ConfigError for a parameter of another part of the workload that lacks the prefix of that part."""
    if arrivals not in ARRIVALS:
        return  # _named() raises the error
    own = {*accepted(ARRIVALS[arrivals].config), *_OF_ALL, *_UNPREFIXED}
    for name in parameters:
        meant = [known for known in _prefixed(parameters) if known.endswith(f"_{name}")]
        if name not in own and meant:
            raise ConfigError(f"arrivals {arrivals!r} has no parameter {name!r}; did you mean {' or '.join(meant)}?")


def _prefixed(parameters: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the parameters that belong to points, keys, delay, source and presence."""
    configs = {"keys": Zipf, "source": Shared, "presence": Presence}
    for part, registry, usual in (("points", POINTS, "independent"), ("delay", DELAYS, "none")):
        if parameters.get(part, usual) in registry:
            configs[part] = registry[parameters.get(part, usual)].config
    for part, config in configs.items():
        yield from (f"{part}_{name}" for name in accepted(config))


def _pop_prefixed(parameters: dict[str, Any], prefix: str) -> dict[str, Any]:
    """Remove the parameters with a prefix from `parameters`; return them with the prefix stripped."""
    return {name.removeprefix(prefix): parameters.pop(name) for name in list(parameters) if name.startswith(prefix)}


def _named(registry: Mapping[str, NamedWorkload], part: str, name: str, parameters: Mapping[str, Any]) -> Any:
    if name not in registry:
        raise ConfigError(f"{part}: unknown {name!r}; use one of {', '.join(registry)}")
    config, settled = registry[name]
    clash = next((parameter for parameter in parameters if parameter in settled), None)
    if clash is not None:
        raise ConfigError(f"{part} {name!r} has {clash}={settled[clash]!r}, so {clash} cannot be given")
    return build(config, {**settled, **parameters}, f"{part} {name!r}")


def _delays(name: str, parameters: dict[str, Any]) -> Any:
    if "usual" in parameters:
        usual = parameters.pop("usual")
        inner = _pop_prefixed(parameters, "usual_")
        parameters["usual"] = _named(DELAYS, "delay_usual", usual, inner)
    return _named(DELAYS, "delay", name, parameters)


def _shared(name: str, made: Any, shares: Mapping[str, Any]) -> Any:
    if not shares:
        return made
    if isinstance(made, Fleet):
        raise ConfigError(f"arrivals {name!r} have streams of their own; give streams instead of sources")
    return build(Shared, {"process": made, **shares}, "source")
