"""Many inputs as one streaming DataFrame, each micro-batch read by few tasks: `skypane-many`.

input_kind.py      what planning and reading need of an input, of whatever kind
discovery.py    which inputs there are, as listed, and as found while the query runs
registry.py   the kinds there are, a line each
growing_inputs.py      files that grow by whole lines; parquet.py finished ones; receiver_logs.py what receivers have written
path_patterns.py   patterns that find more of them
line_rows.py      lines of csv or JSON, looked at before a parser sees them; message_rows.py messages of a topic
row_parser.py    both as Arrow columns, a row each; what does not parse is kept with its place
kafka.py      partitions of topics; kafka_client.py what the driver asks a cluster, kafka_reader.py how a task reads it
planning.py   in the driver: how far each input is read in a batch, and which task reads it
input_metrics.py   what is to be seen of inputs; input_lag.py the same of a query that does not run
source.py     the data source that Spark sees
inputs_api.py       what a user calls: `sp.inputs`; option_names.py, its source's name and defaults
"""
