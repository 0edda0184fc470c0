"""Flags that name a range of the archive, and its replay."""

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from tardis_fast._core import ConfigError
from tardis_fast.options import BronzeOptions, FeedOptions, Settings
from tardis_fast.options.base import unknown_name
from tardis_fast.options.forms import shown
from tardis_fast.replaying import NormalizedReplay, Stream, replay_normalized
from tardis_fast.sample_api import SampleApiThread

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
_STREAM_KEYS = ("exchange", "from", "to", "symbols", "dataTypes", "withDisconnectMessages")


@dataclass(frozen=True)
class ReplayRange:
    """What to replay, and whether from the sample market."""

    streams: tuple[Stream, ...]
    is_sample: bool

    @contextmanager
    def replayed(self, settings: Settings) -> Iterator[NormalizedReplay]:
        """Open the replay; bad options raise `ConfigError` here, before anything is fetched."""
        bronze = settings.bronze
        if bronze.origin is None:
            given = {known.field: value for known, value in bronze.given()}
            bronze = BronzeOptions(**given | {"origin": "replay"})
        with self._feed(settings.archive) as feed:
            made = replay_normalized(*self.streams, feed=feed, encoder=bronze.encoder())
            with made:
                yield made

    @contextmanager
    def _feed(self, archive: FeedOptions) -> Iterator[FeedOptions]:
        if not self.is_sample:
            yield archive
            return
        # A cache of its own, so that nothing made up is ever taken for the archive's.
        with tempfile.TemporaryDirectory("-tardis-fast") as cache, SampleApiThread() as api:
            yield FeedOptions(endpoint=api.endpoint, cache_dir=cache)


def range_options(command: Decorated) -> Decorated:
    """Give a command the flags of a range."""
    for add in reversed(
        (
            click.option("--exchange", metavar="ID", help="Replay this exchange instead of FILE."),
            click.option("--symbols", metavar="A,B", help="Only these symbols."),
            click.option("--data-types", metavar="A,B", help="What to replay: trade,book_change."),
            click.option("--from", "from_", metavar="TIME", help="First minute: 2020-02-01T00:10."),
            click.option("--to", metavar="TIME", help="The end, not included."),
            click.option(
                "--stream",
                "streams",
                multiple=True,
                metavar="JSON",
                help="A stream as the server takes it; repeat to merge.",
            ),
            click.option("--sample", is_flag=True, help="Replay the sample market; needs no key."),
        )
    ):
        command = add(command)
    return command


def range_of(parameters: Mapping[str, Any]) -> ReplayRange | None:
    """Return the range that the flags of a command name; `None` if they name none."""
    texts: dict[str, str | None] = {
        "exchange": parameters["exchange"],
        "from": parameters["from_"],
        "to": parameters["to"],
        "symbols": parameters["symbols"],
        "dataTypes": parameters["data_types"],
    }
    given: dict[str, Any] = {
        key: _names(text) if key in {"symbols", "dataTypes"} else text
        for key, text in texts.items()
        if text is not None
    }
    is_sample = parameters["sample"]
    written = [_read_stream(text) for text in parameters["streams"]]
    if not written and not given and not is_sample:
        return None
    if written and "exchange" in given:
        raise ConfigError("--stream: it contradicts --exchange: a stream names its own; keep one")
    # What is given beside streams is what they have in common.
    streams = tuple(_stream(given | own) for own in written or [{}])
    return ReplayRange(streams, is_sample=is_sample)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _read_stream(text: str) -> dict[str, Any]:
    try:
        options = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"--stream: `{shown(text)}` is no JSON: {error}") from None
    if not isinstance(options, dict):
        raise ConfigError('--stream: it is no JSON object; write {"exchange":"bitmex",...}')
    for key in options:
        if key not in _STREAM_KEYS:
            raise ConfigError(unknown_name("--stream", key, _STREAM_KEYS))
    return options


def _stream(options: Mapping[str, Any]) -> Stream:
    flags = {"exchange": "--exchange", "from": "--from", "to": "--to", "dataTypes": "--data-types"}
    missing = [flag for key, flag in flags.items() if not options.get(key)]
    if missing:
        raise ConfigError(f"a range needs {' and '.join(missing)} too; give them")
    return Stream(
        exchange=options["exchange"],
        from_date=options["from"],
        to_date=options["to"],
        data_types=options["dataTypes"],
        symbols=options.get("symbols"),
        with_disconnect_messages=options.get("withDisconnectMessages", False),
    )
