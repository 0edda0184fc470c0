"""Running a stream batch by batch: once over what is there, or for ever."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pyspark.errors import StreamingQueryException

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession


def run_stream(
    rows: DataFrame,
    take: Callable[[DataFrame, int], None],
    checkpoint: str,
    every: str | None = None,
) -> None:
    """Give each batch of a stream, with its number, to `take`; return at the end of what is there.

    With `every` (for example `10 seconds`) it goes on until it is stopped. Which batch is next is
    kept in `checkpoint`; a batch that was not finished comes again, the same.
    """
    failures: list[Exception] = []

    def take_or_note(batch: DataFrame, number: int) -> None:
        try:
            take(batch, number)
        except Exception as error:
            failures.append(error)
            raise

    writer = rows.writeStream.foreachBatch(take_or_note).option("checkpointLocation", checkpoint)
    writer = writer.trigger(processingTime=every) if every else writer.trigger(availableNow=True)
    query = writer.start()
    try:
        query.awaitTermination()
    except StreamingQueryException as error:
        # Spark tells what happened in `take` as two stacks of the JVM; the error itself says it.
        raise (failures[0] if failures else error) from None
    finally:
        query.stop()


def stream_id(spark: SparkSession, checkpoint: str) -> str:
    """Return the name of the stream that has this checkpoint.

    A checkpoint that was removed and made anew has another one, and its batches other numbers.
    """
    (text,) = (row[0] for row in spark.read.text(f"{checkpoint}/metadata").collect())
    return str(json.loads(text)["id"])
