"""What the commands read: JSON lines, dead-letter files, spill segments, Parquet, Protobuf.

A file is recognised by its first bytes, so its name does not matter.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from tardis_fast import _core

if TYPE_CHECKING:
    import pyarrow as pa

CHUNK_BYTES = 2 << 20
LARGEST_LINE_BYTES = 256 << 20
ROWS = 65_536
RECORD_MAGIC = b"BRONZREC"
PARQUET_MAGIC = b"PAR1"
STANDARD_INPUT = "-"
_VARINT_MORE = 0x80
_VARINT_BITS = 7
_VARINT_LONGEST = 5


class Kind(Enum):
    """What a file holds."""

    OTHER = "lines or bytes"
    RECORDS = "dead letters or spilled events"
    PARQUET = "Bronze columns"


@dataclass(frozen=True)
class Source:
    """A file, or standard input."""

    name: str
    kind: Kind
    size: int | None

    def open(self) -> IO[bytes]:
        """Open it for reading bytes."""
        if self.name == STANDARD_INPUT:
            return sys.stdin.buffer
        return Path(self.name).open("rb")


def sources(names: tuple[str, ...]) -> list[Source]:
    """Return the files; a directory stands for the Parquet files or spill segments below it."""
    found: list[Source] = []
    for name in names:
        path = Path(name)
        if name == STANDARD_INPUT:
            found.append(Source(name, Kind.OTHER, None))
        elif path.is_dir():
            found.extend(_source(below) for below in _files_below(path))
        else:
            found.append(_source(path))
    return found


def _files_below(directory: Path) -> list[Path]:
    for pattern in ("*.parquet", "*.spill"):
        below = [path for path in directory.rglob(pattern) if not _is_unfinished(directory, path)]
        if below:
            return sorted(below)
    raise click.UsageError(f"{directory}: no Parquet file and no spill segment is below it")


def _is_unfinished(directory: Path, path: Path) -> bool:
    """Tell whether a file is still being written: Spark and the lake mark such names so."""
    return any(part[0] in "._" for part in path.relative_to(directory).parts)


def _source(path: Path) -> Source:
    try:
        with path.open("rb") as file:
            head = file.read(len(RECORD_MAGIC))
        size = path.stat().st_size
    except OSError as error:
        raise click.UsageError(f"{path}: cannot be read: {error.strerror}") from None
    kind = Kind.OTHER
    if head == RECORD_MAGIC:
        kind = Kind.RECORDS
    elif head.startswith(PARQUET_MAGIC):
        kind = Kind.PARQUET
    return Source(str(path), kind, size)


def blocks(file: IO[bytes]) -> Iterator[bytes]:
    """Iterate over what a file holds; what a pipe has is not held back until a block is full."""
    read = getattr(file, "read1", file.read)
    while block := read(CHUNK_BYTES):
        yield block


def line_chunks(file: IO[bytes]) -> Iterator[bytes]:
    """Iterate over chunks that end where a line ends."""
    begun: list[bytes] = []
    begun_bytes = 0
    for block in blocks(file):
        end = block.rfind(b"\n") + 1
        if end:
            yield b"".join([*begun, block[:end]])
            begun, begun_bytes = [], 0
        if end < len(block):
            begun.append(block[end:])
            begun_bytes += len(block) - end
            if begun_bytes > LARGEST_LINE_BYTES:
                raise _core.InvalidMessageError("line 1: it is longer than 256 MiB")
    if begun:
        yield b"".join(begun)


def record_chunks(source: Source) -> "Iterator[pa.RecordBatch]":
    """Iterate over the events of a dead-letter file or spill segment, with their reasons."""
    return iter(_core.DeadLetterReader(source.name))


def parquet_chunks(source: Source) -> "Iterator[pa.Array]":
    """Iterate over the events of a Parquet file in Bronze columns."""
    import pyarrow as pa  # noqa: PLC0415 - only who reads Parquet waits for it
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        with pq.ParquetFile(source.name) as file:
            for batch in file.iter_batches(ROWS):
                yield _core.batch_to_events(batch, case=_case_of(source.name))
    except pa.ArrowInvalid as error:
        raise _core.InvalidEventError(f"it is no Parquet file: {error}") from None


def _case_of(name: str) -> str | None:
    """Return the payload case that the lake's directories say; two cases have the same columns."""
    parts = reversed(Path(name).absolute().parts)
    mark = "payload_case="
    return next((part.removeprefix(mark) for part in parts if part.startswith(mark)), None)


def protobuf_chunks(file: IO[bytes]) -> "Iterator[pa.Array]":
    """Iterate over the events of a stream in which each has its length, a varint, before it."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    rest = b""
    for block in blocks(file):
        rest += block
        if rest.startswith(RECORD_MAGIC):
            raise _core.InvalidEventError(
                "it is a dead-letter file or spill segment; give its name instead of piping it"
            )
        events, used = _split(rest)
        rest = rest[used:]
        if events:
            yield pa.array(events, pa.binary())
    if rest:
        raise _core.InvalidEventError(
            f"its last {len(rest)} bytes are no event with its length before it"
        )


def _split(data: bytes) -> tuple[list[bytes], int]:
    """Return the whole events at the beginning of `data` and where they end."""
    events: list[bytes] = []
    done = 0
    while True:
        length, place = 0, done
        while place < len(data) and data[place] & _VARINT_MORE:
            length |= (data[place] & ~_VARINT_MORE) << (_VARINT_BITS * (place - done))
            place += 1
            if place - done >= _VARINT_LONGEST:
                raise _core.InvalidEventError("it is no sequence of events with their lengths")
        if place >= len(data):
            return events, done
        length |= data[place] << (_VARINT_BITS * (place - done))
        end = place + 1 + length
        if end > len(data):
            return events, done
        events.append(data[place + 1 : end])
        done = end


def whole_messages(events: Any) -> int:  # noqa: ANN401 - a pyarrow array
    """Return how many of the events, from the first, make up whole messages."""
    change = _core.events_to_batch(events).column("book_change")
    part, parts = (change.field(name) for name in ("part", "parts"))
    row = len(events) - 1
    while row >= 0 and (parts[row].as_py() or 0) > (part[row].as_py() or 0) + 1:
        row -= 1
    return row + 1
