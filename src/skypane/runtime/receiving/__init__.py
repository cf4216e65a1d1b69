"""Receivers: data that cannot be requested again is written to a log of segment files before it is acknowledged.

segments.py         the layout of a log on disk, for its readers
checksums.py        checksums of segments
log.py              the writer of a log: one receiver at a time; lines are durable before append() returns
retention.py        removal of segments that every reader has passed, on request
group_commit.py     many senders into one log, synced in groups
open_logs.py        the logs of topics, within the limit of open files; write_budget.py: a bound on unwritten bytes
input_list.py       the user's list of inputs, checked; certificates.py: TLS and its files
tcp.py, mqtt.py, http.py   the kinds of inputs
message_lines.py    messages and responses as lines; line_splitting.py: long responses in a separate process
receiver_status.py  the status of an input
time_order.py       the order of a merged log: which field of a line, how long a line waits
merged_log.py       the merge of all logs into one by time; merge_task.py: its steps beside the inputs
waiting_lines.py    lines that wait for the merge; merge_commit.py: a merged block, written exactly once
receiver.py         all inputs of a list, concurrently and independently, until stopped

This package does not use Spark: receivers run while no query does. `runtime/spark/sources/many` reads the logs.
"""
