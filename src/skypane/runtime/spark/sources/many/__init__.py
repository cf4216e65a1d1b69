"""Many inputs as one streaming DataFrame, with few tasks per micro-batch: `skypane-many`.

input_kind.py      the interface of a kind of inputs, for planning and reading
discovery.py       parses the list of inputs, and finds the inputs that exist while the query runs
registry.py        the kinds, one per line
growing_inputs.py  files that grow by whole lines; parquet.py: finished files; receiver_logs.py: logs of receivers
compressed_inputs.py  the former, compressed
object_folders.py  folders of object stores; object_entry.py: one in the list; folder_catalog.py: the objects that wait; object_batches.py: rows of a batch
text_rows.py       the rows of a text of lines
path_patterns.py   paths and patterns
message_rows.py    messages of a topic as Arrow columns, as runtime/line_rows.py parses lines
kafka.py           partitions of topics; kafka_client.py: the driver's requests; kafka_reader.py: how a task reads
schema_registry.py  schemas of messages; avro_messages.py, protobuf_messages.py: records; record_rows.py: their columns
avro_bounds.py     whether a message of a schema of Avro can be larger than its bytes
event_times.py     estimates of the event times of waiting rows
planning.py        in the driver: how far each input is read in a micro-batch, and by which task
input_metrics.py   metrics of inputs; input_lag.py: the same from outside the query
source.py          the data source that Spark loads
inputs_api.py      the public API `sp.inputs`; option_names.py: the source's name and defaults
"""
