"""Rows of any form to Bronze events."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
from pyspark import TaskContext

from tardis_fast import _core
from tardis_fast._core import ConfigError
from tardis_fast.options import BronzeOptions
from tardis_fast.spark.arrow_schemas import spark_schema
from tardis_fast.spark.rejected_rows import RejectedRows
from tardis_fast.spark.row_forms import form_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import DataFrame

    from tardis_fast.spark.row_forms import RowForm

MAX_EVENT_BYTES = 1_048_576
_EVENTS = pa.schema(
    [
        pa.field("event", pa.binary()),
        pa.field("exchange", pa.string()),
        pa.field("symbol", pa.string()),
        pa.field("payload_case", pa.string()),
    ]
)
_REJECTED = [pa.field("encode_error", pa.string()), pa.field("content", pa.string())]


def encode_bronze(  # noqa: PLR0913 - the options, by name
    df: DataFrame,
    *,
    input: str = "auto",  # noqa: A002 - what it is
    column: str | None = None,
    bronze: BronzeOptions | Mapping[str, Any] | None = None,
    session: str | None = None,
    on_error: Literal["fail", "quarantine"] = "fail",
    max_event_bytes: int = MAX_EVENT_BYTES,
) -> DataFrame:
    """Return the Bronze events of rows: `event`, then `exchange`, `symbol` and `payload_case`.

    That is what Spark's own Kafka sink needs for values and keys. Rows are taken as `publish` takes
    them. One that does not fit fails the job; with `quarantine` there are two more columns,
    `encode_error` and `content`, the row as JSON, in rows that have no event.

    The events of messages are numbered for each partition, whose number is part of their
    `session_id`: encoding the same partitions of the same `session` gives the same numbers.
    """
    if on_error not in ("fail", "quarantine"):
        raise ConfigError(f"on_error: `{on_error}` is not known; use fail or quarantine")
    options = bronze if isinstance(bronze, BronzeOptions) else BronzeOptions.from_keys(bronze or {})
    form = form_of(df, input, column)
    options.encoder()  # refuses what cannot be used, before any job
    schema = _EVENTS
    if on_error == "quarantine":
        for field in _REJECTED:
            schema = schema.append(field)
    encoder = _Encoder(form, options, session or new_session(), max_event_bytes, schema)
    return form.select(df).mapInArrow(encoder, spark_schema(schema))


def new_session() -> str:
    """Return the name of a session that was not given one."""
    return f"spark-{uuid.uuid4().hex[:12]}"


class _Encoder:
    """Encodes batches of a partition; it goes to the executors."""

    def __init__(
        self,
        form: RowForm,
        options: BronzeOptions,
        session: str,
        max_event_bytes: int,
        schema: pa.Schema,
    ) -> None:
        self._form = form
        self._options = options
        self._session = session
        self._max_event_bytes = max_event_bytes
        self._schema = schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = TaskContext.get()
        partition = 0 if task is None else task.partitionId()
        encoder = self._options.with_session(f"{self._session}-{partition}").encoder()
        reader = self._form.reader(encoder, self._max_event_bytes)
        rejected = RejectedRows(partition, "read them with on_error='quarantine'")
        rejects = len(self._schema) > len(_EVENTS)
        for batch in batches:
            batch = self._form.select_batch(batch)  # noqa: PLW2901 - the same, as it is read
            events, bad = reader.read(self._form.readable(batch))
            found = rejected.of_batch(batch, bad)
            if not rejects:
                rejected.refuse(found)
            yield self._batch(events)
            if found:
                yield pa.RecordBatch.from_pylist(
                    [{"encode_error": row.reason, "content": row.content} for row in found],
                    schema=self._schema,
                )
        events, _ = reader.finish()
        yield self._batch(events)

    def _batch(self, made: _core.EventBatches) -> pa.RecordBatch:
        events = made.to_arrow()
        columns = [events, *_core.event_keys(events).columns]
        nulls = [pa.nulls(len(events), field.type) for field in list(self._schema)[len(columns) :]]
        return pa.RecordBatch.from_arrays([*columns, *nulls], schema=self._schema)
