"""What a client of Spark Connect sees.

A process of its own, for classic sessions and those of Connect do not mix.
"""

import os
import sys
import warnings

sys.path[:0] = [
    sys.argv[1],
    os.environ["CALIBRANT_HOME"],
]  # this process has our package, the server's workers not
warnings.simplefilter("ignore")
os.environ["SPARK_TESTING"] = "1"  # Spark then finds a free port for its server

# ruff: noqa: E402
import pyarrow as pa
from pyspark.sql import SparkSession

from calibrant.sample.sources.spark import SparkData
from sample.same_counts import (
    PLAIN,
    check_applied,
    check_counts,
    check_fault,
    check_given_edges,
    made_rows,
)


def main() -> None:
    builder = SparkSession.builder.remote("local[2]")
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.warehouse.dir": os.path.join(os.getcwd(), "warehouse"),
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    assert "connect" in type(spark).__module__

    def make(rows, columns):
        frame = spark.createDataFrame(pa.Table.from_pandas(rows, preserve_index=False))
        return SparkData(frame.repartition(3), columns, progress=False)

    try:
        check_given_edges(make, made_rows(500, single=True))
        check_counts(make, made_rows(500, texts=True, single=True))
        check_fault(make, made_rows(100), "a missing label")
        check_applied(make, lambda frame: frame.toArrow().to_pandas(), made_rows(100))
        lacks = SparkData(spark.range(1).selectExpr("0.5D AS p", "1 AS y"), PLAIN)
        assert lacks.sizes() == {None: 1}
    finally:
        spark.stop()
    print("same")


main()
