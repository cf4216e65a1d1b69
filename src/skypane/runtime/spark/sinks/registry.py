"""The sinks that users can name, one per line; the package, job files, errors and docs/reference.md use this list.

In job files a sink has the name of its class in lower case, unless its `job_formats` differ.
"""

from skypane.runtime.spark.sinks.console import Console as Console
from skypane.runtime.spark.sinks.delta import Delta as Delta
from skypane.runtime.spark.sinks.directory import Directory as Directory
from skypane.runtime.spark.sinks.foreach import Foreach as Foreach
from skypane.runtime.spark.sinks.iceberg import Iceberg as Iceberg
from skypane.runtime.spark.sinks.jdbc import Jdbc as Jdbc
from skypane.runtime.spark.sinks.kafka_topic import Kafka as Kafka
from skypane.runtime.spark.sinks.memory import Memory as Memory
from skypane.runtime.spark.sinks.spark_table import Table as Table

_GROUP = "skypane.sinks"
