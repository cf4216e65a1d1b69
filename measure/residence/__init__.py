"""Designs that keep the shards of a continuous skyline outside of the driver, measured by measure/bench/front_residence.py.

one_trip        a step of a front whose shards answer once: what they keep, what travels
journal         files from which a shard is found again, or built again where it is not
tasks           tasks that find their shard in the Python worker of the last step
stateful        a stateful operator of a streaming query
beside          processes beside the executors
critical_path   CPU seconds of a step, by process
"""
