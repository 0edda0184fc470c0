"""`tardis-fast publish`: a range of the archive, or files, to the configured buses."""

import re
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NoReturn, Protocol

import click
from rich.console import Console
from rich.progress import TextColumn
from rich.table import Table

from tardis_fast._core import InvalidEventError, InvalidMessageError, ReplayError
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
from tardis_fast.commands.replay_range import ReplayRange, range_of, range_options
from tardis_fast.commands.terminal import Step, log_to, progress
from tardis_fast.options import (
    BUSES,
    BronzeOptions,
    DeliveryOptions,
    FeedOptions,
    LogOptions,
    Settings,
)
from tardis_fast.publisher import BusStats, Publisher, Remainder
from tardis_fast.replaying import NormalizedReplay

_FLUSH_SECONDS = 0.5
_STOPPING = (signal.SIGINT, signal.SIGTERM)
_EXIT_UNDELIVERED = 1
_EXIT_SIGNAL = 128
_NUMBERED = re.compile(r"^line (\d+): ")


class _Stopped(BaseException):
    """A signal asks to stop. Not an error, and no `except Exception` may hold it up."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@click.command(cls=BusCommand)
@click.argument("files", nargs=-1, metavar="[FILE...]")
@range_options
@options_of(*BUSES, DeliveryOptions, BronzeOptions, FeedOptions, LogOptions)
@click.pass_context
def publish(context: click.Context, /, files: tuple[str, ...], **parameters: object) -> None:
    """Publish a range of the archive, or files, to buses.

    FILE holds normalized messages, one JSON object a line (- reads them from standard input), or
    Bronze events: a dead-letter file, a spill segment, Parquet of the lake, or a directory of it.

    Ends with 0 if everything was acknowledged, 1 if not, 2 if it could not begin.
    """
    replay_range = range_of(parameters)
    if replay_range is None and not files:
        raise click.UsageError(
            "nothing to publish; give FILE..., or --exchange, --from, --to and --data-types"
        )
    if replay_range is not None and files:
        raise click.UsageError(
            f"{files[0]}: it contradicts --exchange: publish files or a range; keep one of them"
        )
    settings = settings_of(context)
    if replay_range is None:
        found = sources(files)
        sys.exit(_deliver(settings, _Files(found)))
    with replay_range.replayed(settings) as replay:
        sys.exit(_deliver(settings, _Range(replay, replay_range)))


class _Work(Protocol):
    """Something to be published."""

    def bar(self, console: Console) -> AbstractContextManager[Step]:
        """Show how far it is."""

    def publish(self, publisher: Publisher, step: Step) -> None:
        """Publish all of it."""


class _Files:
    def __init__(self, found: list[Source]) -> None:
        self._found = found

    def bar(self, console: Console) -> AbstractContextManager[Step]:
        return progress(console, _total_bytes(self._found))

    def publish(self, publisher: Publisher, step: Step) -> None:
        for source in self._found:
            _publish_source(publisher, source, step)


class _Range:
    def __init__(self, replay: NormalizedReplay, replay_range: ReplayRange) -> None:
        self._replay = replay
        exchanges = dict.fromkeys(stream.exchange for stream in replay_range.streams)
        self._name = ", ".join(exchanges)

    def bar(self, console: Console) -> AbstractContextManager[Step]:
        minutes = TextColumn("{task.completed:,.0f}/{task.total:,.0f} min")
        return progress(console, 0, minutes)

    def publish(self, publisher: Publisher, step: Step) -> None:
        step.name(self._name)
        for events in self._replay.events():
            step.events(publisher.publish(events))
            step.replayed(self._replay)


def _deliver(settings: Settings, work: _Work) -> int:
    """Publish, wait for acknowledgements, print the ledger, and return the exit code."""
    errors = Console(stderr=True, highlight=False)
    exit_code = 0
    with log_to(errors, settings.log):
        # A signal waits until somebody can handle it: the publisher may be connected before.
        signal.pthread_sigmask(signal.SIG_BLOCK, _STOPPING)
        publisher = Publisher.of_settings(settings)
        with _stop_on_signals(), work.bar(errors) as step:
            try:
                signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPPING)
                work.publish(publisher, step)
                step.name("waiting for acknowledgements")
                _wait_while_it_moves(publisher, settings.delivery.drain_seconds)
            except (InvalidMessageError, InvalidEventError, ReplayError) as error:
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
    return exit_code


def _total_bytes(found: list[Source]) -> int | None:
    sizes = [source.size for source in found]
    return None if None in sizes else sum(size for size in sizes if size is not None)


def _publish_source(publisher: Publisher, source: Source, step: Step) -> None:
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


def _publish_lines(publisher: Publisher, source: Source, step: Step) -> None:
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
        for other in _STOPPING:
            signal.signal(other, signal.SIG_DFL)
        raise _Stopped(number)

    for number in _STOPPING:
        signal.signal(number, stop)
    try:
        yield
    finally:
        # Draining has a time-out of its own; a signal during it ends the program at once.
        for number in _STOPPING:
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
