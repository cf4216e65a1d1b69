"""A discrete-event simulation of both stages, driven by the laws that drive the engine: what two cores cannot show.

heap.py         the event heap
simulated_stream.py       a stream made ready for the farm
pane_events.py  the pane-level farm, compiled
partition.py    exact results of partitions, where the stream has points
pane_farm.py    the farm as an object; farm_arrays.py makes its arrays
window_farm.py  the window-level farm: a scheduler's instructions, executed in virtual time
cost_models.py        what a tuple and a merge cost
simulation.py   both farms, monitored, split and scaled by the laws
"""
