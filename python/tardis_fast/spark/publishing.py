"""Publishing DataFrames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from tardis_fast._core import ConfigError, TardisFastError
from tardis_fast.options import BronzeOptions, Settings
from tardis_fast.spark.arrow_schemas import spark_schema
from tardis_fast.spark.encoding import MAX_EVENT_BYTES, new_session
from tardis_fast.spark.ledger_rows import LEDGER, RESULT
from tardis_fast.spark.process_publisher import executor_settings
from tardis_fast.spark.publishing_task import PublishingTask
from tardis_fast.spark.row_forms import form_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import DataFrame

    from tardis_fast.options import DeliveryOptions


def publish(  # noqa: PLR0913 - the options, by name
    df: DataFrame,
    *,
    settings: Settings | None = None,
    kafka: object = None,
    kinesis: object = None,
    sqs: object = None,
    nats: object = None,
    redis: object = None,
    lake: object = None,
    event_bus: Mapping[str, Any] | None = None,
    delivery: DeliveryOptions | Mapping[str, Any] | None = None,
    bronze: BronzeOptions | Mapping[str, Any] | None = None,
    input: str = "auto",  # noqa: A002 - what it is
    column: str | None = None,
    quarantine: str | None = None,
    allow_dead_letters: bool = False,
    session: str | None = None,
    max_event_bytes: int = MAX_EVENT_BYTES,
) -> DataFrame:
    """Publish all rows now, and return the ledger: a row for each partition and bus.

    Buses are given as to `tardis_fast.Publisher`, or together as `settings`. Rows are Bronze
    events, Bronze columns, normalized messages as JSON, or a dataset as CSV; their form is found by
    the columns unless `input` says it (`bronze`, `json`, `wide`, `narrow:CASE`, `csv:DATASET`), and
    a schema that fits none is refused before any job.

    A task succeeds when all of its events are acknowledged. If it fails, Spark runs it again and
    events may come twice, which the ledger counts; none is lost.

    A row that gives no event fails the job. With `quarantine`, a directory, such rows are written
    there as Parquet, below `kind=quarantine`, with the reason; ledgers are kept beside them. Events
    that a bus refuses for good fail the job too, unless `allow_dead_letters` puts them there.

    Events of messages and datasets are numbered for each partition, and their `session_id` is
    `session` and the partition: attempts give the same event the same number, so that it can be
    told from others downstream. Rows of `incremental_book_L2` that stand together and have the same
    times are one book change; read each file as one partition, as Spark reads gzip.
    """
    if settings is None:
        settings = _settings(
            {
                "kafka": kafka,
                "kinesis": kinesis,
                "sqs": sqs,
                "nats": nats,
                "redis": redis,
                "lake": lake,
            },
            event_bus,
            delivery,
            bronze,
        )
    if allow_dead_letters and quarantine is None:
        raise ConfigError(
            "allow_dead_letters: it needs quarantine=, a directory in which they are kept"
        )
    run = session or new_session()
    form = form_of(df, input, column)
    task = PublishingTask(
        executor_settings(settings),
        form,
        run,
        quarantines=quarantine is not None,
        allow_dead_letters=allow_dead_letters,
        max_event_bytes=max_event_bytes,
    )
    result = form.select(df).mapInArrow(_ResultBatches(task), spark_schema(RESULT))
    return _ledger(_run(result, quarantine, run), df)


def publish_batch(
    *,
    on_ledger: Callable[[DataFrame, int], object] | None = None,
    **options: Any,  # noqa: ANN401 - those of `publish`
) -> Callable[[DataFrame, int], None]:
    """Return a function for `foreachBatch` that publishes each batch with the options of `publish`.

    A batch is done when everything in it is acknowledged. A batch that Spark runs again has the
    same session, which is made of the query's id and the batch's. `on_ledger` gets each ledger.
    """

    def publish_one(batch: DataFrame, batch_id: int) -> None:
        query = batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
        session = f"{options.get('session') or query or 'stream'}-{batch_id}"
        ledger = publish(batch, **options | {"session": session})
        if on_ledger is not None:
            on_ledger(ledger, batch_id)

    return publish_one


def _settings(
    buses: dict[str, object],
    event_bus: Mapping[str, Any] | None,
    delivery: DeliveryOptions | Mapping[str, Any] | None,
    bronze: BronzeOptions | Mapping[str, Any] | None,
) -> Settings:
    options = bronze if isinstance(bronze, BronzeOptions) else BronzeOptions.from_keys(bronze or {})
    options.encoder()  # refuses what cannot be used, before any job
    return Settings.of_objects(buses, event_bus=event_bus, delivery=delivery, bronze=options)


class _ResultBatches:
    """Runs a task and gives its rows as batches."""

    def __init__(self, task: PublishingTask) -> None:
        self._task = task

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in self._task.rows(batches):
            yield pa.RecordBatch.from_pylist(rows, schema=RESULT)


def _run(result: DataFrame, quarantine: str | None, run: str) -> list[Any]:
    """Run the job, once: asking its result a second time would publish a second time."""
    if quarantine is None:
        return result.select(*LEDGER.names).collect()
    result.write.mode("append").partitionBy("kind").parquet(quarantine)
    written = result.sparkSession.read.schema(result.schema).parquet(quarantine)
    ledgers = written.where((F.col("kind") == "ledger") & (F.col("run") == run))
    return ledgers.select(*LEDGER.names).collect()


def _ledger(rows: list[Any], df: DataFrame) -> DataFrame:
    wrong = [row for row in rows if row.accepted != row.acknowledged + row.dead_lettered]
    if wrong:
        raise TardisFastError(f"the ledger is not balanced: {wrong[0]}")
    rows.sort(key=lambda row: (row.partition, row.bus))
    return df.sparkSession.createDataFrame(rows, spark_schema(LEDGER))
