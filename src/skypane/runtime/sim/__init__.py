"""A discrete-event simulation of both stages, driven by the laws that drive the engine: what two cores cannot show.

plain.py        the pane-level farm in plain Python: the definition, and the oracle of the compiled one
heap.py         the event heap
stream.py       a stream made ready for the farm
pane_farm.py    the pane-level farm, compiled
partition.py    exact results of partitions, where the stream has points
farm.py         the farm as an object; farm_arrays.py makes its arrays
window_farm.py  the window-level farm: a scheduler's instructions, executed in virtual time
queueing.py     one queue and several servers, for comparison with queueing theory
costs.py        what a tuple and a merge cost
simulation.py   both farms, monitored, split and scaled by the laws
"""
