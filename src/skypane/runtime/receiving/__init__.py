"""What cannot be asked for again is written down before it is acknowledged: a log of segment files per input.

segments.py    how a log lies on disk, for those who read it
sums.py        checksums of what lies there
log.py         who writes it: one receiver at a time, durable before it returns
retention.py   segments that every reader has passed, removed when asked to
intake.py      from many senders into one log, synced in groups
open_logs.py   the logs of topics, not more open than there are files for; room.py   how much may wait
inputs.py      what a user lists: kinds of inputs, checked; certificates.py   TLS, and the files that it takes
tcp.py, mqtt.py, http.py   the kinds
messages.py    how messages and answers become lines; cutting.py   the long ones, aside
seen.py        what a receiver says of itself
receiver.py    all inputs of a list at once, each by itself, until it is stopped

No Spark here: receiving goes on while no query runs. `runtime/spark/sources/many` reads what lies there.
"""
