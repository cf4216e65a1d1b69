"""Many inputs as one streaming DataFrame, each micro-batch read by few tasks: `skypane-many`.

listing.py    which inputs there are: files, and patterns that find more while the query runs
growing.py    a file that grows by whole lines: how far it goes, where n rows end
lines.py      lines of csv or JSON as Arrow columns; a line that does not parse is kept with its place
planning.py   in the driver: how far each input is read in a batch, and which task reads it
source.py     the data source that Spark sees
door.py       what a user calls: `sp.inputs`
"""
