"""The events of every payload case, as they should arrive, and what must never be said."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

import tardis_fast
from tardis_fast import PAYLOAD_CASES, BronzeEncoder, Publisher
from tardis_fast.proto.lakehouse.bronze.v1.normalized_event_pb2 import NormalizedEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    import pytest

LINES = (files(tardis_fast) / "samples" / "messages.jsonl").read_bytes()
INGEST_MICROS = 1_709_251_202_000_000
SECRET = "hush-hush"
"""Stands for all that no log, error or ledger may show."""


@dataclass(frozen=True)
class Arrival:
    """An event as a bus gives it back, with its headers."""

    data: bytes
    headers: Mapping[str, str]

    @property
    def event(self) -> NormalizedEvent:
        """The event, read by the generated class."""
        return NormalizedEvent.FromString(self.data)


def case_of(event: NormalizedEvent) -> str:
    """Return the name of an event's payload case, as options spell it."""
    first, *others = str(event.WhichOneof("payload")).split("_")
    return first + "".join(other.title() for other in others)


def default_key(event: NormalizedEvent) -> str:
    """Return the key of an event that is not given one."""
    return f"{event.exchange}|{event.symbol}|{case_of(event)}"


def sample_data(include: Collection[str] = PAYLOAD_CASES) -> list[bytes]:
    """Return the samples as a new publisher encodes them that publishes these payload cases."""
    # What is not published takes no number.
    lines = [line for line in LINES.splitlines(keepends=True) if _case_of_line(line) in include]
    events = BronzeEncoder().encode_json(b"".join(lines), ingest_micros=INGEST_MICROS)
    return [bytes(event) for event in events.to_pylist()]


def _case_of_line(line: bytes) -> str:
    first, *_ = BronzeEncoder().encode_json(line, ingest_micros=INGEST_MICROS).to_pylist()
    return case_of(NormalizedEvent.FromString(first))


def publish_samples(publisher: Publisher, patience: float) -> None:
    """Publish the samples, and wait until they are delivered."""
    publisher.publish(LINES, ingest_micros=INGEST_MICROS)
    assert publisher.flush(patience)


def expected_arrivals(
    include: Collection[str],
    destination: Callable[[NormalizedEvent], str],
    headers: Callable[[NormalizedEvent], Mapping[str, str]],
) -> dict[str, list[Arrival]]:
    """Return where the samples must be, and with which headers."""
    expected: dict[str, list[Arrival]] = {}
    for data in sample_data(include):
        event = NormalizedEvent.FromString(data)
        expected.setdefault(destination(event), []).append(Arrival(data, headers(event)))
    return expected


def in_sequence(arrivals: Iterable[Arrival]) -> list[Arrival]:
    """Return what arrived as it was sent; only events of one key arrive in that order."""
    return sorted(arrivals, key=lambda arrival: arrival.event.event_seq)


def all_that_was_said(caplog: pytest.LogCaptureFixture, *things: object) -> str:
    """Return all log records with their fields, and how things show themselves."""
    logged = [f"{record.getMessage()} {vars(record)}" for record in caplog.records]
    return "\n".join([*logged, *(f"{thing} {thing!r}" for thing in things)])
