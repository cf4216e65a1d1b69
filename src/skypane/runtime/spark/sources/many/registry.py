"""The kinds of inputs there are, a line each: a module whose KEY is what the mapping of an input has for it."""

from skypane.runtime.spark.sources.many import files as files
from skypane.runtime.spark.sources.many import kafka as kafka
from skypane.runtime.spark.sources.many import parquet as parquet
from skypane.runtime.spark.sources.many import segments as segments
