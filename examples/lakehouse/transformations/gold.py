"""Answers: the same as those of ``amqpgate audit usage`` and ``denials``."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

from amqpgate import pipeline

spark = SparkSession.active()


@dp.materialized_view
def gold_usage_by_day() -> DataFrame:
    """A bill."""
    return pipeline.usage(spark.read.table("silver_usage"), "day")


@dp.materialized_view
def gold_denials() -> DataFrame:
    """What was refused most."""
    return pipeline.denials(spark.read.table("silver_events"))
