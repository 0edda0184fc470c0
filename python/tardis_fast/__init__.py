"""Crypto market data, historical and live, into programs, event buses and the lakehouse."""

from typing import TYPE_CHECKING

from tardis_fast._core import (
    PAYLOAD_CASES,
    BronzeEncoder,
    ConfigError,
    DeadLetterReader,
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

if TYPE_CHECKING:
    from tardis_fast.machine import TardisMachine
    from tardis_fast.publisher import AsyncPublisher, Publisher, check_buses

__all__ = [
    "PAYLOAD_CASES",
    "AsyncPublisher",
    "BronzeEncoder",
    "ConfigError",
    "DeadLetterReader",
    "InvalidEventError",
    "InvalidMessageError",
    "Publisher",
    "TardisFastError",
    "TardisMachine",
    "__version__",
    "batch_to_events",
    "bronze_schema",
    "check_buses",
    "decode_to_json",
    "events_by_case",
    "events_to_batch",
]

_LOADED_ON_USE = {
    "AsyncPublisher": "tardis_fast.publisher",
    "Publisher": "tardis_fast.publisher",
    "TardisMachine": "tardis_fast.machine",
    "check_buses": "tardis_fast.publisher",
}
"""What needs pydantic, so that those who only encode do not wait for its import."""


def __getattr__(name: str) -> object:
    from importlib import import_module  # noqa: PLC0415 - not needed by those who only encode

    if name not in _LOADED_ON_USE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LOADED_ON_USE[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
