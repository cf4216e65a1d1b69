"""Which versions of Python, Java and packages pass the core tests: settings, tried one after the other, in a table.

make matrix                          every setting; minutes each, most of them for installing
make matrix ARGS="numpy pyspark-4.1"    these
make newest                          what is newer than the lock, and what of it breaks what
"""
