"""What makes the tables and pictures of docs/: one command each, such as `python -m measure.yardstick.cells docs`.

bench/             comparisons with peers, a command for each claim; all of them: `make bench`
admission/         hundreds of inputs on few readers: the acceptance run, beside Spark's own source, rates that step
elastic/           elastic workers on Spark: rates that step, other programs on the machine
endurance/         thousands of small batches: memory, handles, files
latency/           latency against dropped rows, policy by policy
yardstick/         AqKSlack against K-slack and the best fixed delay
versions/          the core tests with other versions of Python, Java and packages
workload_gallery/  plots of every generator
bursty.py, decisions.py, example_map.py, fuzzy.py, reference.py, reproductions.py   one table or picture each
tables.py, processes.py, bounded.py   what they share
"""
