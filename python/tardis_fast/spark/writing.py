"""`df.write.format("tardis_bus")`: publishing as a sink of Spark, for batches and streams."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from tardis_fast._core import ConfigError
from tardis_fast.options.base import unknown_name
from tardis_fast.options.settings import SECTIONS, load_settings
from tardis_fast.spark.encoding import MAX_EVENT_BYTES, new_session
from tardis_fast.spark.process_publisher import executor_settings
from tardis_fast.spark.publishing_task import PublishingTask
from tardis_fast.spark.row_forms import form_of_schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from tardis_fast.options import Settings

_OWN = ("input", "column", "session", "max-event-bytes")
_LOG = logging.getLogger(__name__)


class TardisBusSink(DataSource):
    """The data source `tardis_bus`.

    Options are the flags of the command line without their dashes (`kafka-brokers`, ...), and
    `input`, `column`, `session` and `max-event-bytes` of `publish`. A row that gives no event fails
    the write; `publish` can set such rows aside.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "tardis_bus"

    def writer(self, schema: StructType, overwrite: bool) -> BusWriter:  # noqa: FBT001 - Spark's
        """Return a writer of a batch."""
        _refuse_overwriting(overwrite=overwrite)
        return BusWriter(_task(self.options, schema))

    def streamWriter(self, schema: StructType, overwrite: bool) -> BusStreamWriter:  # noqa: FBT001, N802 - Spark's
        """Return a writer of a stream."""
        _refuse_overwriting(overwrite=overwrite)
        return BusStreamWriter(_task(self.options, schema))


def _refuse_overwriting(*, overwrite: bool) -> None:
    if overwrite:
        raise ConfigError("mode: a bus cannot be overwritten; use append")


@dataclass
class Ledger(WriterCommitMessage):
    """The ledger of a task, a row for each bus."""

    rows: list[dict[str, Any]]


def _written(task: PublishingTask, batches: Iterator[pa.RecordBatch]) -> Ledger:
    rows = [row for found in task.rows(batches) for row in found]
    return Ledger(rows)


def _log(messages: list[WriterCommitMessage | None]) -> None:
    totals: dict[str, int] = {}
    for message in messages:
        for row in message.rows if isinstance(message, Ledger) else []:
            totals[row["bus"]] = totals.get(row["bus"], 0) + row["acknowledged"]
    for bus, acknowledged in totals.items():
        _LOG.info("%s: %s events acknowledged", bus, acknowledged)


class BusWriter(DataSourceArrowWriter):
    """Publishes a batch."""

    def __init__(self, task: PublishingTask) -> None:
        self._task = task

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Publish a partition."""
        return _written(self._task, iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Say what was published."""
        _log(messages)


class BusStreamWriter(DataSourceStreamArrowWriter):
    """Publishes a stream."""

    def __init__(self, task: PublishingTask) -> None:
        self._task = task

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Publish a partition."""
        return _written(self._task, iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803 - Spark's
        """Say what was published."""
        _log(messages)


def _task(options: Mapping[str, str], schema: StructType) -> PublishingTask:
    own, settings = _read_options(options)
    return PublishingTask(
        executor_settings(settings),
        form_of_schema(schema, own.get("input", "auto"), own.get("column")),
        own.get("session") or new_session(),
        quarantines=False,
        allow_dead_letters=False,
        max_event_bytes=int(own.get("max-event-bytes", MAX_EVENT_BYTES)),
    )


def _read_options(options: Mapping[str, str]) -> tuple[dict[str, str], Settings]:
    by_flag = {
        known.flag_of(name).removeprefix("--"): (model.section, name)
        for model in SECTIONS
        for known in model.options()
        for name in known.keys
    }
    own: dict[str, str] = {}
    flags: dict[str, dict[str, object]] = {}
    for key, value in options.items():
        flag = key.lower().replace("_", "-")
        if flag in _OWN:
            own[flag] = value
        elif flag in by_flag:
            section, name = by_flag[flag]
            flags.setdefault(section, {})[name] = value
        elif flag not in ("path", "checkpointlocation"):
            raise ConfigError(
                unknown_name('format("tardis_bus")', flag, [*by_flag, *_OWN], "option")
            )
    return own, load_settings(flags, {}, None)
