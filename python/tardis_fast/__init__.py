"""Crypto market data, historical and live, into programs, event buses and the lakehouse."""

from tardis_fast._core import (
    PAYLOAD_CASES,
    BronzeEncoder,
    InvalidEventError,
    InvalidMessageError,
    TardisFastError,
    __version__,
    batch_to_events,
    bronze_schema,
    decode_to_json,
    events_by_case,
    events_to_batch,
)

__all__ = [
    "PAYLOAD_CASES",
    "BronzeEncoder",
    "InvalidEventError",
    "InvalidMessageError",
    "TardisFastError",
    "__version__",
    "batch_to_events",
    "bronze_schema",
    "decode_to_json",
    "events_by_case",
    "events_to_batch",
]
