"""The kinds of inputs, one module per line; a mapping chooses a kind by the key that equals the module's KEY."""

from skypane.runtime.spark.sources.many import growing_inputs as growing_inputs
from skypane.runtime.spark.sources.many import kafka as kafka
from skypane.runtime.spark.sources.many import object_folders as object_folders
from skypane.runtime.spark.sources.many import parquet as parquet
from skypane.runtime.spark.sources.many import receiver_logs as receiver_logs

_GROUP = "skypane.inputs"
