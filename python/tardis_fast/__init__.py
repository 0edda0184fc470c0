"""Crypto market data, historical and live, into programs, event buses and the lakehouse."""

from typing import TYPE_CHECKING

from tardis_fast._core import (
    PAYLOAD_CASES,
    Archive,
    Bell,
    BronzeEncoder,
    Chunk,
    Computer,
    ConfigError,
    DeadLetterReader,
    EventBatches,
    InvalidEventError,
    InvalidMessageError,
    ReplayError,
    RowReader,
    SampleMarket,
    SampleStream,
    Session,
    TardisFastError,
    __version__,
    batch_to_events,
    bronze_schema,
    can_subscribe,
    check_options,
    dataset_columns,
    decode_to_json,
    event_keys,
    events_by_case,
    events_to_batch,
    events_to_checked_batch,
    subscribed_filters,
)

if TYPE_CHECKING:
    from tardis_fast.machine import TardisMachine
    from tardis_fast.options import FeedOptions
    from tardis_fast.publisher import AsyncPublisher, Publisher, check_buses
    from tardis_fast.replaying import (
        NormalizedReplay,
        Replay,
        Stream,
        clear_cache,
        replay,
        replay_normalized,
    )

__all__ = [
    "PAYLOAD_CASES",
    "Archive",
    "AsyncPublisher",
    "Bell",
    "BronzeEncoder",
    "Chunk",
    "Computer",
    "ConfigError",
    "DeadLetterReader",
    "EventBatches",
    "FeedOptions",
    "InvalidEventError",
    "InvalidMessageError",
    "NormalizedReplay",
    "Publisher",
    "Replay",
    "ReplayError",
    "RowReader",
    "SampleMarket",
    "SampleStream",
    "Session",
    "Stream",
    "TardisFastError",
    "TardisMachine",
    "__version__",
    "batch_to_events",
    "bronze_schema",
    "can_subscribe",
    "check_buses",
    "check_options",
    "clear_cache",
    "dataset_columns",
    "decode_to_json",
    "event_keys",
    "events_by_case",
    "events_to_batch",
    "events_to_checked_batch",
    "replay",
    "replay_normalized",
    "subscribed_filters",
]

_LOADED_ON_USE = {
    "AsyncPublisher": "tardis_fast.publisher",
    "FeedOptions": "tardis_fast.options",
    "NormalizedReplay": "tardis_fast.replaying",
    "Publisher": "tardis_fast.publisher",
    "Replay": "tardis_fast.replaying",
    "Stream": "tardis_fast.replaying",
    "TardisMachine": "tardis_fast.machine",
    "check_buses": "tardis_fast.publisher",
    "clear_cache": "tardis_fast.replaying",
    "replay": "tardis_fast.replaying",
    "replay_normalized": "tardis_fast.replaying",
}
"""What needs pydantic, so that those who only encode do not wait for its import."""


def __getattr__(name: str) -> object:
    from importlib import import_module  # noqa: PLC0415 - not needed by those who only encode

    if name not in _LOADED_ON_USE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LOADED_ON_USE[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
