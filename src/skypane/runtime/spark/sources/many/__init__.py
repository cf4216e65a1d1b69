"""Many inputs as one streaming DataFrame, each micro-batch read by few tasks: `skypane-many`.

kinds.py      what planning and reading need of an input, of whatever kind
listing.py    which inputs there are, as listed, and as found while the query runs; the kinds by their keys
files.py      files that grow by whole lines, and patterns that find more of them
growing.py    such a file: how far it goes, where n rows end
lines.py      lines of csv or JSON as Arrow columns; a line that does not parse is kept with its place
planning.py   in the driver: how far each input is read in a batch, and which task reads it
source.py     the data source that Spark sees
door.py       what a user calls: `sp.inputs`
"""
