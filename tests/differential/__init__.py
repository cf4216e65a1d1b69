"""Random cases for all queries: each is answered in many ways, which must agree with one another and with the definition.

    seed -> draw/ -> Case -> definition/ -> what is wanted --+
                      |                                       +-> compare.py -> nothing, or a Failure -> shrink.py
                      +----> ways/ ------> what was found  --+

A case (case.py) is a plain value: rows in the order in which they come, the query over them (Skyline, KDominant, TopDelta, TopK,
Aggregate or Continuous, as case.py has them), windows, a policy, the batch of each row, drains, the ways to try, and the seed of the
choices that these make. `draw.cases.drawn(seed)` makes it: the same seed, the same case. Values tie, drift, are huge, tiny, infinite
or null; most cases have some dozens of rows, some go over several blocks of the kernels.

definition/   what is right, from all pairs of rows, in plain Python and NumPy; imports nothing of skypane
expected.py   what the definition says of a case: `expected(case)` -> Rows | Values | Updates | Refused
objects.py    the case as skypane's own objects: `plan(case)`, `query(spec, schema)`, `policy(...)`; nothing else makes them
ways/         windowed.py: local.py, trees of merges, workers, queues, the functions of Spark's batch without Spark
              continuous.py: fronts whole, grouped, in shards, of tables, remembered and gone on with
              streams.py: under policies that drop rows, where the definition is applied to those that entered (accounts.py)
compare.py    `difference(case, expected(case), found)`: None, or what differs, in words. Rows are multisets (those of top-k in
              order), with the bits of their numbers: -0.0 is not 0.0, NaN is NaN
laws.py       what else must hold, of a case and another one made of it: other cuts, orders, groups, times; ADD and DEL replayed
peer.py       DuckDB's opinion of the definition
checking.py   `failure_of(case)`: None, or the first Failure(case, way, what) of its ways and laws
shrink.py     `shrunk(failure, failure_of)`: a smaller case that fails
kept.py       cases that once failed, in kept.jsonl, tried before all others: `kept()`, `accumulate(case, why)`
points.py     random points for the kernels alone, of sizes at which another algorithm takes over
policies.py   random times for the policies alone, against their words (definition/late.py, ahead.py)
spark/        the same cases on Spark: static, as streams that are started again, whose sinks fail and whose commits are lost
mutants/      small faults in copies of the sources, which some case must show: `make mutants`

    python -m tests.differential [--seconds S | --cases N] [--seed SEED] [--only KIND]    exit code 1 at the first failure
    python -m tests.differential --case SEED [--keep WHY]                                 one case, shrunk, and what differs
    make fuzz MINUTES=60 [SEED=n]

At the end one line says how many cases there were, and how many a minute, by kind. To add a way: a function from a case to what it
has found (a table of answers with their window's bounds; for a continuous skyline ways.continuous.Emitted), by name in
ways/ and in draw/cases.py: WAYS.
"""
