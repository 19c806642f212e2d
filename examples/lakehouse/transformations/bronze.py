"""Records as they come, each file once."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

from amqpgate import pipeline

spark = SparkSession.active()
pipeline.register(spark)


def coming(table: str) -> DataFrame:
    """The records of one sort, as a stream."""
    return spark.readStream.format("amqpgate").option("table", table).load(spark.conf.get("amqpgate.folder"))


@dp.table
def bronze_usage() -> DataFrame:
    """What sessions did."""
    return coming("usage")


@dp.table
def bronze_events() -> DataFrame:
    """What happened."""
    return coming("events")
