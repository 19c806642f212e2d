"""Each record once, whatever was copied twice."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

spark = SparkSession.active()


@dp.materialized_view
def silver_usage() -> DataFrame:
    """What sessions did."""
    return spark.read.table("bronze_usage").dropDuplicates(["record_id"])


@dp.materialized_view
def silver_events() -> DataFrame:
    """What happened."""
    return spark.read.table("bronze_events").dropDuplicates(["record_id"])
