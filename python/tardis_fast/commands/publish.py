"""`tardis-fast publish`: messages and events from files to the configured buses."""

import re
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import click
from rich.console import Console
from rich.table import Table

from tardis_fast._core import InvalidEventError, InvalidMessageError
from tardis_fast.commands.event_files import (
    STANDARD_INPUT,
    Kind,
    Source,
    line_chunks,
    parquet_chunks,
    record_chunks,
    sources,
)
from tardis_fast.commands.option_flags import BusCommand, options_of, settings_of
from tardis_fast.commands.terminal import log_to, progress
from tardis_fast.options import BUSES, BronzeOptions, DeliveryOptions, FeedOptions, LogOptions
from tardis_fast.publisher import BusStats, Publisher, Remainder

if TYPE_CHECKING:
    from tardis_fast.commands.terminal import Step

_FLUSH_SECONDS = 0.5
_EXIT_UNDELIVERED = 1
_EXIT_SIGNAL = 128
_NUMBERED = re.compile(r"^line (\d+): ")


class _Stopped(BaseException):
    """A signal asks to stop. Not an error, and no `except Exception` may hold it up."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@click.command(cls=BusCommand)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@options_of(*BUSES, DeliveryOptions, BronzeOptions, FeedOptions, LogOptions)
@click.pass_context
def publish(context: click.Context, /, files: tuple[str, ...], **_: object) -> None:
    """Publish messages or events from files to the configured buses.

    FILE holds normalized messages, one JSON object a line (- reads them from standard input), or
    Bronze events: a dead-letter file, a spill segment, Parquet of the lake, or a directory of it.

    Ends with 0 if everything was acknowledged, 1 if not, 2 if it could not begin.
    """
    settings = settings_of(context)
    found = sources(files)
    errors = Console(stderr=True, highlight=False)
    exit_code = 0
    with log_to(errors, settings.log):
        publisher = Publisher.of_settings(settings)
        with _stop_on_signals(), progress(errors, _total_bytes(found)) as step:
            try:
                for source in found:
                    _publish_source(publisher, source, step)
                step.name("waiting for acknowledgements")
                _wait_while_it_moves(publisher, settings.delivery.drain_seconds)
            except (InvalidMessageError, InvalidEventError) as error:
                errors.print(f"error: {error}", markup=False, soft_wrap=True)
                exit_code = _EXIT_UNDELIVERED
            except _Stopped as stopped:
                exit_code = _EXIT_SIGNAL + stopped.number
                name = signal.Signals(stopped.number).name
                errors.print(
                    f"{name}: reading no more, delivering for at most "
                    f"{settings.delivery.drain_seconds:g} s; the same again ends at once and loses "
                    "what is in memory",
                    soft_wrap=True,
                )
        remainders = publisher.close()
    stats = publisher.stats()
    _print_ledger(stats, remainders)
    _say_what_is_left(errors, stats, remainders)
    if not exit_code and not _all_acknowledged(stats, remainders):
        exit_code = _EXIT_UNDELIVERED
    sys.exit(exit_code)


def _total_bytes(found: list[Source]) -> int | None:
    sizes = [source.size for source in found]
    return None if None in sizes else sum(size for size in sizes if size is not None)


def _publish_source(publisher: Publisher, source: Source, step: "Step") -> None:
    step.name("standard input" if source.name == STANDARD_INPUT else source.name)
    if source.kind is Kind.OTHER:
        _publish_lines(publisher, source, step)
        return
    try:
        for events in _event_chunks(source):
            step.events(publisher.publish(events))
    except InvalidEventError as error:
        raise InvalidEventError(f"{source.name}: {error}") from None
    step.bytes(source.size or 0)


def _event_chunks(source: Source) -> Iterator[Any]:
    if source.kind is Kind.PARQUET:
        yield from parquet_chunks(source)
    else:
        for batch in record_chunks(source):
            yield batch.column("event")


def _publish_lines(publisher: Publisher, source: Source, step: "Step") -> None:
    lines_before = 0
    with source.open() as file:
        try:
            for chunk in line_chunks(file):
                step.events(publisher.publish(chunk))
                step.bytes(len(chunk))
                lines_before += chunk.count(b"\n")
        except InvalidMessageError as error:
            _raise_with_place(source, lines_before, str(error))


def _raise_with_place(source: Source, lines_before: int, text: str) -> NoReturn:
    """Raise the error with the file's name, and the line's number in the file, not in its chunk."""
    text = _NUMBERED.sub(lambda found: f"line {lines_before + int(found[1])}: ", text)
    raise InvalidMessageError(f"{source.name}: {text}")


def _wait_while_it_moves(publisher: Publisher, patience_seconds: float) -> None:
    """Wait until all is settled, or nothing more was for `patience_seconds`."""
    settled_before, last_move = -1, time.monotonic()
    while not publisher.flush(_FLUSH_SECONDS):
        stats = publisher.stats().values()
        settled = sum(bus.accepted - bus.waiting for bus in stats)
        if settled != settled_before:
            settled_before, last_move = settled, time.monotonic()
        elif time.monotonic() - last_move > patience_seconds:
            return


@contextmanager
def _stop_on_signals() -> Iterator[None]:
    """Raise `_Stopped` at the first signal; from then on a signal does what it does by default."""

    def stop(number: int, _: object) -> None:
        for other in (signal.SIGINT, signal.SIGTERM):
            signal.signal(other, signal.SIG_DFL)
        raise _Stopped(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    try:
        yield
    finally:
        # Draining has a time-out of its own; a signal during it ends the program at once.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)


def _all_acknowledged(stats: dict[str, BusStats], remainders: dict[str, Remainder]) -> bool:
    failed = sum(bus.dead_lettered + bus.dropped for bus in stats.values())
    return not failed and not any(remainder.left for remainder in remainders.values())


def _print_ledger(stats: dict[str, BusStats], remainders: dict[str, Remainder]) -> None:
    table = Table()
    table.add_column("bus")
    for name in ("accepted", "acknowledged", "retried", "dead letters", "dropped", "left"):
        table.add_column(name, justify="right")
    for bus, figures in stats.items():
        counts = (
            figures.accepted,
            figures.acknowledged,
            figures.retried,
            figures.dead_lettered,
            figures.dropped,
            remainders[bus].left,
        )
        table.add_row(bus, *(f"{count:,}" for count in counts))
    Console().print(table)


def _say_what_is_left(
    errors: Console, stats: dict[str, BusStats], remainders: dict[str, Remainder]
) -> None:
    for bus, figures in stats.items():
        remainder = remainders[bus]
        if remainder.left and remainder.kept_in:
            errors.print(
                f"{bus}: {remainder.left:,} events wait in {remainder.kept_in} and are sent at the "
                "next start",
                markup=False,
                soft_wrap=True,
            )
        elif remainder.left:
            errors.print(f"{bus}: {remainder.left:,} events are lost", markup=False, soft_wrap=True)
        if figures.dead_lettered and figures.dead_letter_file:
            errors.print(
                f"{bus}: {figures.dead_lettered:,} dead letters are in {figures.dead_letter_file}; "
                f"`tardis-fast decode --reasons` shows why",
                markup=False,
                soft_wrap=True,
            )
