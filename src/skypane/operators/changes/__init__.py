"""Changes of a query whose state is kept: what the partials of the open panes hold is enough, or is stated as missing.

comparison.py         the recorded query and the new one -> the differences, each kept, begun or refused
shared_comparison.py  the same for several queries over one stream, and queries that are added and removed
aggregate_state.py    partials of other functions -> partials of the new ones
passed_rows.py        rows with other columns, or of a larger k -> those of the new query
window_phases.py      windows that hold rows read before the change, and how they are answered
first_windows.py      the window from which another query answers, if nothing is kept
recorded_query.py     the recorded query, made runnable again: it answers the windows before that one
"""
