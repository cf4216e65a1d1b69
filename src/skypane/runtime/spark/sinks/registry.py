"""The sinks that a user may name, a line each: the package, job files, errors and docs/reference.md have them from here.

A sink is called in job files as its class is, in small letters, unless its `job_formats` say otherwise.
"""

from skypane.runtime.spark.sinks.console import Console as Console
from skypane.runtime.spark.sinks.directory import Directory as Directory
from skypane.runtime.spark.sinks.memory import Memory as Memory
