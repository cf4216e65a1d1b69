"""Versions of Python, Java and packages that pass the core tests: try each setting, and put the results into a table.

make matrix                          every setting; each takes minutes, mostly for installing
make matrix ARGS="numpy pyspark-4.1"    these settings
make newest                          packages newer than the lock, and the tests that they break
"""
