"""The workers of a stream as users set them, and the workers and the policy that follow from them."""

from __future__ import annotations

from dataclasses import dataclass

from skypane.control.elasticity import registry
from skypane.control.elasticity.elastic import Elastic
from skypane.control.elasticity.options import Elasticity
from skypane.control.parallelism import Workers
from skypane.control.splitting import Splitting, splitting
from skypane.plugins import Registered
from skypane.types import ConfigError


@dataclass(frozen=True, kw_only=True)
class WorkerOptions:
    """Numbers of workers of a stream, the policy that changes them, and the exchange of rows between them.

    plq_workers  maximum number of tasks that lift, and the exact number when rows are exchanged; defaults to the
                 source's partitions, or to the default parallelism when rows are exchanged
    wlq_workers  maximum number of tasks that combine, or of shards of a continuous skyline's front, in threads of the
                 driver or in tasks; the front stays whole while that is faster; defaults to the default parallelism
    splitting    how rows are exchanged, if they are: "PB_RR" (panes to workers in turn), "TB_RR" (rows to workers in
                 turn), "AS" (splits panes larger than usual), "AS_PID" (splits as few of them as it takes to keep up);
                 None: for each batch, the way that is predicted to be the fastest
    elastic      policy that changes both numbers while the query runs: Fuzzy(), Model(latency="2 s"), Threshold();
                 None keeps them

    >>> workers = sp.WorkerOptions(plq_workers=2, wlq_workers=2, splitting="AS_PID")
    >>> job = sp.stream(
    ...     arriving, "price MIN", time="ts", window="1 hour", checkpoint="state", output="best", workers=workers
    ... )
    """

    plq_workers: int | None = None
    wlq_workers: int | None = None
    splitting: str | Splitting | None = None
    elastic: Elasticity | None = None

    def __post_init__(self) -> None:
        # Both raise ConfigError on invalid values.
        self._numbers(1)
        self.splitting_policy()
        if not isinstance(self.elastic, Elasticity | None):
            raise ConfigError(
                f"elastic must be {' or '.join(f'{name}()' for name in Registered(registry))}, with max_workers=, or "
                f"None; got {self.elastic!r}"
            )

    def begin(self, parallelism: int) -> tuple[Workers, Elastic | None]:
        """Return the workers with which a stream begins, within the elastic policy's bounds, and that policy, if any.

        Raises ConfigError if a number that is set lies out of the bounds.
        """
        start = self._numbers(parallelism)
        if self.elastic is None:
            return start, None
        policy = self.elastic.scaling(start, parallelism)
        first = policy.init().workers
        for stage in ("plq", "wlq"):
            wanted, bounded = getattr(self, f"{stage}_workers"), getattr(first, stage)
            if wanted not in (None, bounded):
                raise ConfigError(
                    f"{stage}_workers={wanted} is where elastic= begins, and its bounds allow {bounded}: set that, or "
                    f"widen max_workers, least_{stage}, most_{stage}"
                )
        return first, policy

    def splitting_policy(self) -> Splitting | None:
        """Return the policy that is set, if one is; raise ConfigError if none has its name."""
        return None if self.splitting is None else splitting(self.splitting)

    @property
    def executors_follow(self) -> bool:
        """Whether executors are requested and released as the workers change; they are not in a dry run."""
        return self.elastic is not None and self.elastic.executors == "follow" and not self.elastic.dry_run

    def _numbers(self, default: int) -> Workers:
        plq, wlq = self.plq_workers, self.wlq_workers
        return Workers(default if plq is None else plq, default if wlq is None else wlq)
