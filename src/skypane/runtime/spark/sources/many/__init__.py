"""Many inputs as one streaming DataFrame, each micro-batch read by few tasks: `skypane-many`.

kinds.py      what planning and reading need of an input, of whatever kind
listing.py    which inputs there are, as listed, and as found while the query runs
registry.py   the kinds there are, a line each
files.py      files that grow by whole lines; parquet.py finished ones; segments.py what receivers have written
patterns.py   patterns that find more of them
lines.py      lines of csv or JSON, looked at before a parser sees them; messages.py messages of a topic
parsing.py    both as Arrow columns, a row each; what does not parse is kept with its place
kafka.py      partitions of topics; brokers.py what the driver asks a cluster, consuming.py how a task reads it
planning.py   in the driver: how far each input is read in a batch, and which task reads it
watching.py   what is to be seen of inputs; standing.py the same of a query that does not run
source.py     the data source that Spark sees
door.py       what a user calls: `sp.inputs`
"""
