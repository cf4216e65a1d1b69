"""Programs that make the tables and pictures of docs/, one command each: `python -m measure.yardstick.cells docs`.

bench/             comparisons with peers, one command per claim; `make bench` runs all
peers/             programs of others: WindFlow, and the C++ of paper 1
results/           records of runs, and the pages and charts that are written from them
runs/              the runs of `make bench`, a file each
admission/         hundreds of inputs on few readers: the acceptance run, Spark's own source, rate steps
elastic/           elastic workers on Spark: rate steps, other programs on the machine
endurance/         thousands of small batches: memory, handles, files
first_minute/      what a new process takes until its first answers, by parts; for bench/first_minute.py
latency/           latency against dropped rows, by policy
yardstick/         AqKSlack against K-slack and the best fixed delay
versions/          the core tests with other versions of Python, Java and packages
workload_gallery/  plots of every generator
reproductions/     the papers' figures with verdicts, each with the day and the machine
bursty.py, decisions.py, example_map.py, fuzzy.py, reference.py   one table or picture each
notebooks.py       the outputs of the notebooks of docs
tables.py, processes.py, bounded.py   shared helpers
"""
