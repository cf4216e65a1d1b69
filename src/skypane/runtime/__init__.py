"""Execution of plans: the only layer that uses clocks, files, processes and Spark.

line_rows.py, row_parser.py   lines of csv or JSON as Arrow columns, each checked before it is parsed; for sources and receivers
"""
