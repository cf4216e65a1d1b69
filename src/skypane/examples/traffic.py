"""The ends of traffic queues: a user-defined aggregate (isQueueEnd of paper 3, section 1.1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skypane.types import ConfigError, IntArray


@dataclass(frozen=True)
class QueueEnd:
    """Whether an area has the end of a queue: several vehicles enter it at speed and crawl in it later.

    Inside a queue vehicles are slow already when they enter, and at its head they leave at speed; only its end has fast
    and then slow vehicles. A vehicle counts if it reports a speed of at least `fast` and, after its first such report,
    one of at most `slow`. It must also report at least `crawling` such slow speeds in all, which a red light does not
    cause.

    vehicle, speed, time  columns: the vehicle, its speed (km/h), and the time of the report (a timestamp)
    vehicles              number of vehicles that make the end of a queue

    The state has, for each vehicle of an area, the time of its first fast report, the time of its last slow report, and
    the number of slow reports. States of panes and of parts of panes can therefore be merged in any order, and windows
    share them. This would not hold for "fast, then slow" in consecutive reports.
    """

    vehicle: str
    speed: str
    time: str
    fast: float = 20.0
    slow: float = 10.0
    crawling: int = 4
    vehicles: int = 3

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.vehicle, self.speed, self.time)

    def state_type(self, schema: pa.Schema) -> pa.DataType:
        speed, time = (schema.field(name).type for name in (self.speed, self.time))
        if not (pa.types.is_floating(speed) or pa.types.is_integer(speed)):
            raise ConfigError(
                f"speed must be a column of numbers, but column {self.speed!r} is {speed}; cast it to double"
            )
        if not pa.types.is_timestamp(time):
            raise ConfigError(
                f"time must be a column of timestamps, but column {self.time!r} is {time}; cast it to timestamp"
            )
        kinds = {"vehicle": schema.field(self.vehicle).type, "came": time, "crawled": time, "slow": pa.int64()}
        return pa.list_(pa.struct(list(kinds.items())))

    def output_type(self, schema: pa.Schema) -> pa.DataType:
        del schema
        return pa.bool_()

    def lift(self, rows: pa.Table, groups: IntArray, n: int) -> pa.Array:
        fast = pc.greater_equal(rows[self.speed], self.fast)
        slow = pc.less_equal(rows[self.speed], self.slow)
        never = pa.scalar(None, rows.schema.field(self.time).type)
        seen = pa.table(
            {
                "group": groups,
                "vehicle": rows[self.vehicle],
                "came": pc.if_else(fast, rows[self.time], never),
                "crawled": pc.if_else(slow, rows[self.time], never),
                "slow": slow.cast(pa.int64()),
            }
        )
        return _states(seen.filter(pc.or_(fast, slow)), n)

    def combine(self, states: pa.Array, groups: IntArray, n: int) -> pa.Array:
        vehicles = pa.Table.from_struct_array(pc.list_flatten(states))
        owners = groups[pc.list_parent_indices(states).to_numpy()]
        return _states(vehicles.add_column(0, "group", pa.array(owners)), n)

    def lower(self, states: pa.Array) -> pa.Array:
        vehicles = pc.list_flatten(states)
        came, crawled, slow = (pc.struct_field(vehicles, [part]) for part in (1, 2, 3))
        joined = pc.and_(pc.fill_null(pc.less(came, crawled), fill_value=False), pc.greater_equal(slow, self.crawling))
        areas = pc.list_parent_indices(states).to_numpy()[joined.to_numpy(zero_copy_only=False)]
        return pa.array(np.bincount(areas, minlength=len(states)) >= self.vehicles)


def _states(seen: pa.Table, n: int) -> pa.Array:
    """Return the merged state of each group, with its vehicles in the order of their names."""
    kept = [("came", "min"), ("crawled", "max"), ("slow", "sum")]
    merged = seen.group_by(["group", "vehicle"], use_threads=False).aggregate(kept)
    merged = merged.sort_by([("group", "ascending"), ("vehicle", "ascending")]).combine_chunks()
    edges = np.searchsorted(merged["group"].to_numpy(), np.arange(n + 1)).astype(np.int32)
    columns = [merged[name].combine_chunks() for name in ("vehicle", "came_min", "crawled_max", "slow_sum")]
    return pa.ListArray.from_arrays(
        pa.array(edges), pa.StructArray.from_arrays(columns, ["vehicle", "came", "crawled", "slow"])
    )
