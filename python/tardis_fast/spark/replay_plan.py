"""How a replay is divided so that executors share it and every row stays the same.

Trades are made from one message each, so their range can be cut anywhere. All other types depend on
what came before: books on their snapshot, tickers on values that were sent once, bars on the bar's
start. Their range is not cut; they are divided by symbol. Filters narrow what is read in the same
way: a later start only for trades, an earlier end, an exchange and symbols for all.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from tardis_fast._core import ConfigError
from tardis_fast.options.base import unknown_name
from tardis_fast.replaying import Stream

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

MINUTE = timedelta(minutes=1)
_CUT_TYPE = "trade"
_CUT_EXCHANGES = frozenset(
    {
        "binance",
        "binance-delivery",
        "binance-futures",
        "binance-us",
        "bitmex",
        "bybit",
        "bybit-spot",
        "coinbase",
        "deribit",
        "kraken",
        "okex",
        "okex-futures",
        "okex-options",
        "okex-swap",
    }
)
"""Where trades do not depend on earlier messages, as they do at Bitfinex (which channel has which
symbol) and Hyperliquid (the first message repeats old trades)."""


@dataclass(frozen=True)
class Part:
    """A part of a replay, for one task."""

    exchange: str
    data_types: tuple[str, ...]
    symbols: tuple[str, ...] | None
    from_date: datetime
    to_date: datetime
    with_disconnect_messages: bool = False

    @property
    def is_cut_freely(self) -> bool:
        """Whether its range can be cut without a change to its rows."""
        return (
            self.data_types == (_CUT_TYPE,)
            and self.exchange in _CUT_EXCHANGES
            and not self.with_disconnect_messages
        )

    @property
    def session(self) -> str:
        """A name that the same part has each time, so that its events have the same identity."""
        symbols = "*" if self.symbols is None else "+".join(self.symbols)
        range_ = f"{self.from_date:%Y%m%dT%H%M}-{self.to_date:%Y%m%dT%H%M}"
        return f"{self.exchange}/{symbols}/{'+'.join(self.data_types)}/{range_}"

    def stream(self) -> Stream:
        """Return what is replayed."""
        return Stream(
            self.exchange,
            self.from_date,
            self.to_date,
            self.data_types,
            self.symbols,
            self.with_disconnect_messages,
        )


@dataclass(frozen=True)
class Narrowing:
    """What filters leave of a replay; `None` = all."""

    exchanges: frozenset[str] | None = None
    symbols: frozenset[str] | None = None
    from_date: datetime | None = None
    to_date: datetime | None = None
    """Whole minutes, the last not included."""


def plan(
    parts: Sequence[Part], partition_minutes: int, narrowing: Narrowing | None = None
) -> list[Part]:
    """Divide parts into what tasks do."""
    narrowed = [part for whole in parts for part in _narrowed(whole, narrowing or Narrowing())]
    return [
        task
        for whole in narrowed
        for part in _by_type(whole)
        for task in (_by_time(part, partition_minutes) if part.is_cut_freely else _by_symbol(part))
    ]


def _narrowed(part: Part, by: Narrowing) -> Iterator[Part]:
    if by.exchanges is not None and part.exchange not in by.exchanges:
        return
    symbols = part.symbols
    if by.symbols is not None and not part.with_disconnect_messages:
        # Disconnects have no symbol, and come with any.
        symbols = tuple(sorted(by.symbols if symbols is None else _both(symbols, by.symbols)))
        if not symbols:
            return
    for whole in _by_type(replace(part, symbols=symbols)):
        from_date, to_date = whole.from_date, whole.to_date
        if by.from_date is not None and whole.is_cut_freely:
            from_date = max(from_date, by.from_date)
        if by.to_date is not None:
            to_date = min(to_date, by.to_date)
        if from_date < to_date:
            yield replace(whole, from_date=from_date, to_date=to_date)


def _both(symbols: Collection[str], wanted: Collection[str]) -> list[str]:
    """Return the symbols that are wanted; how they are written does not matter to the archive."""
    known = {symbol.upper() for symbol in wanted}
    return [symbol for symbol in symbols if symbol.upper() in known]


def _by_type(part: Part) -> list[Part]:
    """Part the type that can be cut from the others."""
    if _CUT_TYPE not in part.data_types or part.with_disconnect_messages:
        return [part]
    others = tuple(name for name in part.data_types if name != _CUT_TYPE)
    parts = [replace(part, data_types=(_CUT_TYPE,))]
    return [*parts, replace(part, data_types=others)] if others else parts


def _by_time(part: Part, minutes: int) -> Iterator[Part]:
    step = timedelta(minutes=minutes)
    start = part.from_date
    while start < part.to_date:
        end = min(start + step, part.to_date)
        yield replace(part, from_date=start, to_date=end)
        start = end


def _by_symbol(part: Part) -> list[Part]:
    if part.symbols is None or part.with_disconnect_messages:
        return [part]
    return [replace(part, symbols=(symbol,)) for symbol in part.symbols]


def read_parts(options: Mapping[str, str]) -> list[Part]:
    """Read the streams of a replay from the options of a data source, in lower case."""
    if "streams" not in options:
        return [_part({key: options[key] for key in _STREAM_KEYS if key in options})]
    double = [key for key in _STREAM_KEYS if key in options]
    if double:
        raise ConfigError(
            f"streams: it contradicts {double[0]}: both say what is replayed; keep one of them"
        )
    try:
        streams = json.loads(options["streams"])
    except json.JSONDecodeError as error:
        raise ConfigError(f"streams: it is no JSON: {error}") from None
    if not isinstance(streams, list) or not all(isinstance(stream, dict) for stream in streams):
        raise ConfigError("streams: give a JSON list of objects, as /replay-normalized takes them")
    return [_part({key.lower(): value for key, value in stream.items()}) for stream in streams]


_STREAM_KEYS = {
    "exchange": "exchange",
    "from": "from",
    "to": "to",
    "symbols": "symbols",
    "data_types": "data_types",
    "datatypes": "data_types",
    "with_disconnect_messages": "with_disconnect_messages",
    "withdisconnectmessages": "with_disconnect_messages",
}
STREAM_OPTIONS = tuple(_STREAM_KEYS)
_TRUTHS = {"true": True, "false": False}


def _part(given: Mapping[str, Any]) -> Part:
    values: dict[str, Any] = {}
    for key, value in given.items():
        if key not in _STREAM_KEYS:
            raise ConfigError(unknown_name("streams", key, list(_STREAM_KEYS)))
        values[_STREAM_KEYS[key]] = value
    for key in ("exchange", "from", "to", "data_types"):
        if not values.get(key):
            raise ConfigError(f"{key}: it is missing; give it as an option")
    disconnects = str(values.get("with_disconnect_messages", False)).lower()
    if disconnects not in _TRUTHS:
        raise ConfigError(f"with_disconnect_messages: `{disconnects}` is neither true nor false")
    return Part(
        exchange=str(values["exchange"]),
        data_types=tuple(_names(values["data_types"])),
        symbols=tuple(_names(values.get("symbols") or ())) or None,
        from_date=_minute("from", values["from"]),
        to_date=_minute("to", values["to"]),
        with_disconnect_messages=_TRUTHS[disconnects],
    )


def _names(value: str | Sequence[str]) -> list[str]:
    names = value.split(",") if isinstance(value, str) else value
    return list(dict.fromkeys(name.strip() for name in names if name.strip()))


def _minute(option: str, value: object) -> datetime:
    """Read a time; seconds are cut, as the archive does."""
    try:
        time = datetime.fromisoformat(str(value).replace("Z", "+00:00"))
    except ValueError:
        raise ConfigError(
            f"{option}: `{value}` is no date or time; write 2024-03-01T00:00"
        ) from None
    time = time.replace(tzinfo=timezone.utc) if time.tzinfo is None else time
    return time.astimezone(timezone.utc).replace(second=0, microsecond=0)
