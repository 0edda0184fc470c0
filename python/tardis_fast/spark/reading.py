"""`spark.read.format("tardis")`: normalized messages from the archive, in the columns of Bronze."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)

from tardis_fast import _core
from tardis_fast._core import ConfigError
from tardis_fast.options import BronzeOptions, FeedOptions
from tardis_fast.options.base import unknown_name
from tardis_fast.replaying import replay_normalized
from tardis_fast.spark.arrow_schemas import spark_schema
from tardis_fast.spark.replay_plan import (
    MINUTE,
    STREAM_OPTIONS,
    Narrowing,
    Part,
    plan,
    read_parts,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pyspark.sql.types import StructType

PARTITION_MINUTES = 60
_BATCH_BYTES = 4 << 20
"""Events of several chunks go into one batch: each costs Spark about the same."""
_CASES = (
    ("trade_bar", "tradeBar"),
    ("book_snapshot", "bookSnapshot"),
    ("quote", "quote"),
    ("trade", "trade"),
    ("book_change", "bookChange"),
    ("derivative_ticker", "derivativeTicker"),
    ("liquidation", "liquidation"),
    ("option_summary", "optionSummary"),
    ("book_ticker", "bookTicker"),
)
"""Payload cases by how the names of their data types begin."""


class TardisSource(DataSource):
    """The data source `tardis`.

    Options: `exchange`, `symbols`, `from`, `to`, `data_types` (lists with commas), or `streams`, a
    JSON list of such objects; `with_disconnect_messages`; those of `FeedOptions` (`endpoint`,
    `api_key`, `cache_dir`, ...) and of `BronzeOptions`; `partition_minutes`. One data type gives
    the columns of its payload case, several give a struct column for each case.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "tardis"

    def schema(self) -> StructType:
        """Return the columns."""
        request = Request(self.options)
        return spark_schema(_core.bronze_schema(request.case))

    def reader(self, schema: StructType) -> TardisReader:
        """Return a reader of all columns."""
        if schema != self.schema():
            raise ConfigError(
                "schema: the columns follow from data_types; leave the schema out and select"
            )
        return TardisReader(Request(self.options))


class Request:
    """The options of a read."""

    def __init__(self, options: Mapping[str, str]) -> None:
        given = {key.lower(): value for key, value in options.items() if key.lower() != "path"}
        models = {known.key: FeedOptions for known in FeedOptions.options()} | {
            known.key: BronzeOptions for known in BronzeOptions.options()
        }
        known = [*STREAM_OPTIONS, "streams", "partition_minutes", *models]
        for key in given:
            if key not in known:
                raise ConfigError(unknown_name('format("tardis")', key, known, "option"))
        of_model: dict[type, dict[str, Any]] = {FeedOptions: {}, BronzeOptions: {}}
        for key, model in models.items():
            if key in given:
                of_model[model][key] = given[key]
        self.feed = FeedOptions(**of_model[FeedOptions])
        self.bronze = BronzeOptions(**{"origin": "replay"} | of_model[BronzeOptions])
        self.bronze.encoder()
        self.parts = read_parts(given)
        self.partition_minutes = _minutes(given.get("partition_minutes", str(PARTITION_MINUTES)))
        self.case = _case(self.parts)


def _minutes(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ConfigError(f"partition_minutes: `{text}` is no whole number from 1 on; give one")
    return int(text)


def _case(parts: Sequence[Part]) -> str | None:
    """Return the only payload case; `None` if there may be several."""
    data_types = {data_type for part in parts for data_type in part.data_types}
    if len(data_types) != 1 or any(part.with_disconnect_messages for part in parts):
        return None
    (data_type,) = data_types
    if data_type.startswith("book_snapshot") and "_grouped" in data_type:
        return "groupedBookSnapshot"
    return next((case for name, case in _CASES if data_type.startswith(name)), None)


class _PartToRead(InputPartition):
    def __init__(self, part: Part) -> None:
        super().__init__(part)


class TardisReader(DataSourceReader):
    """Replays parts, each on an executor."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._narrowing = Narrowing()

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Narrow what is replayed; Spark filters the rows as well, since minutes are not exact."""
        for one in filters:
            self._narrowing = _narrowed(self._narrowing, one)
        return filters

    def partitions(self) -> list[InputPartition]:
        """Return what tasks read."""
        request = self._request
        tasks = plan(request.parts, request.partition_minutes, self._narrowing)
        return [_PartToRead(part) for part in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Replay a part; `None` is what Spark makes of no parts."""
        schema = _core.bronze_schema(self._request.case)
        yield pa.RecordBatch.from_pylist([], schema=schema)
        part: Part | None = partition.value
        if part is None:
            return
        encoder = self._request.bronze.with_session(part.session).encoder()
        with replay_normalized(part.stream(), feed=self._request.feed, encoder=encoder) as replay:
            for events in _joined(replay.events()):
                yield _core.events_to_batch(events, case=self._request.case)


def _joined(arrays: Iterable[pa.Array]) -> Iterator[pa.Array]:
    waiting: list[pa.Array] = []
    size = 0
    for events in arrays:
        waiting.append(events)
        size += events.nbytes
        if size >= _BATCH_BYTES:
            yield pa.concat_arrays(waiting)
            waiting, size = [], 0
    if waiting:
        yield pa.concat_arrays(waiting)


def _narrowed(narrowing: Narrowing, one: Filter) -> Narrowing:
    if isinstance(one, (EqualTo, In)):
        values = one.value if isinstance(one, In) else (one.value,)
        if one.attribute == ("symbol",):
            return _with(narrowing, symbols=_common(narrowing.symbols, values))
        if one.attribute == ("exchange",):
            return _with(narrowing, exchanges=_common(narrowing.exchanges, values))
    if getattr(one, "attribute", None) != ("local_ts",):
        return narrowing
    time = _utc(one.value) if hasattr(one, "value") else None
    if time is None:
        return narrowing
    minute = time.replace(second=0, microsecond=0)
    if isinstance(one, (EqualTo, GreaterThan, GreaterThanOrEqual)):
        later = minute if narrowing.from_date is None else max(minute, narrowing.from_date)
        narrowing = _with(narrowing, from_date=later)
    if isinstance(one, (EqualTo, LessThan, LessThanOrEqual)):
        end = minute if isinstance(one, LessThan) and time == minute else minute + MINUTE
        earlier = end if narrowing.to_date is None else min(end, narrowing.to_date)
        narrowing = _with(narrowing, to_date=earlier)
    return narrowing


def _with(narrowing: Narrowing, **changes: Any) -> Narrowing:  # noqa: ANN401 - its fields
    return Narrowing(**vars(narrowing) | changes)


def _common(known: frozenset[str] | None, values: Iterable[Any]) -> frozenset[str]:
    wanted = frozenset(str(value) for value in values if value is not None)
    return wanted if known is None else known & wanted


def _utc(value: object) -> datetime | None:
    if isinstance(value, int):  # microseconds since 1970
        return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=value)
    if not isinstance(value, datetime):
        return None
    return value.astimezone(timezone.utc)
