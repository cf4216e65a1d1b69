"""A discrete-event simulation of both stages, driven by the laws that drive the engine: what two cores cannot show.

plain.py        the pane-level farm in plain Python: the definition, and the oracle of the compiled one
heap.py         the event heap
pane_farm.py    the pane-level farm, compiled
farm.py         a stream made ready for it; the farm as an object
window_farm.py  the window-level farm: a scheduler's instructions, executed in virtual time
queueing.py     one queue and several servers, for comparison with queueing theory
costs.py        what a tuple and a merge cost
simulation.py   both farms, monitored, split and scaled by the laws
"""
