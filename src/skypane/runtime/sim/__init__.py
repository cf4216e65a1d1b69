"""A discrete-event simulation of both stages under the engine's own control policies, for any number of workers.

heap.py              the event heap
simulated_stream.py  a stream prepared for the pane-level farm
pane_events.py       the pane-level farm, compiled
partition.py         exact results of partitions, for streams with points
pane_farm.py         the pane-level farm as an object; farm_state.py has its arrays
window_farm.py       the window-level farm: executes the instructions of a scheduler in virtual time
cost_models.py       the costs of a tuple and of a merge
simulation.py        both farms, with monitoring, splitting and elasticity
"""
