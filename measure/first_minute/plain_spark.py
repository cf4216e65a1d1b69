"""What README's program does, as far as Spark can do it alone: the least price and the best rating, instead of skylines."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

spark = (
    SparkSession.builder.master("local[*]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "2")
    .getOrCreate()
)
offers = spark.createDataFrame(
    [
        ("10:02", "Basel", 90.0, 4.5),
        ("10:20", "Basel", 75.0, 4.0),
        ("10:40", "Basel", 80.0, 3.9),
        ("11:10", "Basel", 60.0, 4.4),
    ],
    "time string, city string, price double, rating double",
).selectExpr("to_timestamp('2026-01-01 ' || time) AS ts", "city", "price", "rating")
offers.groupBy("city").agg(sf.min("price"), sf.max("rating")).show()
offers.write.json("few-offers")
arriving = spark.readStream.schema(offers.schema).json("few-offers")
hours = arriving.withWatermark("ts", "0 seconds").groupBy(sf.window("ts", "1 hour"))
job = (
    hours.agg(sf.min("price").alias("price"), sf.max("rating").alias("rating"))
    .writeStream.format("parquet")
    .option("path", "best")
    .option("checkpointLocation", "state")
    .trigger(availableNow=True)
)
handle = job.start()
handle.awaitTermination()
spark.read.parquet("best").orderBy("window").show(truncate=False)
