"""`tardis-fast decode`: Bronze events as JSON lines."""

import json
import sys
from collections.abc import Iterator
from itertools import groupby
from typing import IO, TYPE_CHECKING, Any

import click

from tardis_fast import _core
from tardis_fast._core import InvalidEventError, TardisFastError
from tardis_fast.commands.event_files import (
    STANDARD_INPUT,
    Kind,
    Source,
    parquet_chunks,
    protobuf_chunks,
    record_chunks,
    sources,
    whole_messages,
)

if TYPE_CHECKING:
    import pyarrow as pa

Chunk = tuple[str | None, Any]
"""The common reason of dead letters, and their events."""


@click.command()
@click.argument("files", nargs=-1, metavar="[FILE...]")
@click.option(
    "--per-event", is_flag=True, help="A line per event, also for parts of a book change."
)
@click.option("--reasons", is_flag=True, help="Begin each line with the reason of a dead letter.")
@click.option(
    "--case",
    "cases",
    multiple=True,
    metavar="CASE",
    help="Only this payload case; may be repeated.",
)
def decode(
    files: tuple[str, ...], cases: tuple[str, ...], *, per_event: bool, reasons: bool
) -> None:
    """Show Bronze events as JSON lines.

    FILE is a dead-letter file, a spill segment, Parquet of the lake (also a directory of it), or
    Protobuf with the length of each event, a varint, before it; that is also what is read from
    standard input, if FILE is - or missing.

    The parts of a book change are one line where all of them are there.
    """
    columns = _columns_of(cases)
    out = sys.stdout.buffer
    for source in sources(files or (STANDARD_INPUT,)):
        if reasons and source.kind is not Kind.RECORDS:
            raise click.UsageError(f"--reasons: {source.name} holds none; give a dead-letter file")
        try:
            with source.open() as file:
                chunks = _filtered(_chunks(source, file), columns)
                for reason, events in _messages(chunks, per_event=per_event):
                    _write(out, events, reason if reasons else None, per_event=per_event)
        except InvalidEventError as error:
            raise InvalidEventError(f"{source.name}: {error}") from None
    out.flush()


def _columns_of(cases: tuple[str, ...]) -> list[str]:
    """Return the names of the payload cases' columns; an unknown case is refused."""
    known = {_letters(case): case for case in _core.bronze_schema().names}
    columns = []
    for case in cases:
        try:
            _core.bronze_schema(case)
        except TardisFastError as error:
            raise click.UsageError(f"--case: {error}") from None
        columns.append(known[_letters(case)])
    return columns


def _letters(case: str) -> str:
    return "".join(filter(str.isalnum, case)).lower()


def _chunks(source: Source, file: IO[bytes]) -> Iterator[Chunk]:
    if source.kind is Kind.RECORDS:
        for batch in record_chunks(source):
            yield from _by_reason(batch)
    elif source.kind is Kind.PARQUET:
        yield from ((None, events) for events in parquet_chunks(source))
    else:
        yield from ((None, events) for events in protobuf_chunks(file))


def _by_reason(batch: "pa.RecordBatch") -> Iterator[Chunk]:
    """Iterate over the runs of events with the same reason."""
    start = 0
    for reason, run in groupby(batch.column("reason").to_pylist()):
        length = sum(1 for _ in run)
        yield reason, batch.column("event").slice(start, length)
        start += length


def _filtered(chunks: Iterator[Chunk], columns: list[str]) -> Iterator[Chunk]:
    for reason, events in chunks:
        if not columns:
            yield reason, events
            continue
        import pyarrow.compute as pc  # noqa: PLC0415 - only who filters waits for it

        batch = _core.events_to_batch(events)
        wanted = pc.is_valid(batch.column(columns[0]))
        for column in columns[1:]:
            wanted = pc.or_(wanted, pc.is_valid(batch.column(column)))
        yield reason, events.filter(wanted)


def _messages(chunks: Iterator[Chunk], *, per_event: bool) -> Iterator[Chunk]:
    """Cut chunks anew so that no book change lies in two of them with the same reason."""
    if per_event:
        yield from chunks
        return
    import pyarrow as pa  # noqa: PLC0415 - loaded already by who made the events

    rest: Chunk | None = None
    for reason, chunk in chunks:
        events = chunk
        if rest is not None and rest[0] == reason:
            events = pa.concat_arrays([rest[1], events])
        elif rest is not None:
            yield rest
        whole = whole_messages(events)
        yield reason, events.slice(0, whole)
        rest = (reason, events.slice(whole)) if whole < len(events) else None
    if rest is not None:
        yield rest


def _write(out: IO[bytes], events: Any, reason: str | None, *, per_event: bool) -> None:  # noqa: ANN401 - a pyarrow array
    try:
        lines = _core.decode_to_json(events, per_event=per_event)
    except InvalidEventError:
        # Dead letters may be some parts of a book change only.
        lines = _core.decode_to_json(events, per_event=True)
    if reason is not None and lines:
        begin = b'{"reason":' + json.dumps(reason, ensure_ascii=False).encode() + b","
        lines = begin + lines[1:-1].replace(b"\n{", b"\n" + begin) + b"\n"
    out.write(lines)
