"""The ledger of a bus as Python sees it."""

import json
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True)
class Latency:
    """How long acknowledgements took, as a histogram of events."""

    bounds: tuple[float, ...]
    """Upper bounds of the buckets in seconds; the last bucket has none."""
    buckets: tuple[int, ...]
    """Events of each bucket, not cumulative."""
    sum_seconds: float


@dataclass(frozen=True)
class BusStats:
    """Where every event is that a bus accepted."""

    accepted: int
    """Events taken in, those of an earlier process's spill included."""
    accepted_bytes: int
    acknowledged: int
    """Events that the broker has."""
    retried: int
    """How many times events were sent again."""
    dead_lettered: int
    """Events in the dead-letter file."""
    spilled: int
    """Events that wait on disk."""
    spilled_bytes: int
    spilled_total: int
    """How many times events went to disk."""
    dropped: int
    """Events given up because the policy is `drop` and the disk's share was full."""
    in_memory: int
    in_memory_bytes: int
    in_flight: int
    in_flight_bytes: int
    waiting: int
    """Events that are accepted and neither acknowledged, dead-lettered nor dropped."""
    memory_limit_bytes: int
    """Bytes of events that may be in memory and in flight."""
    spill_limit_bytes: int
    """Bytes that may wait on disk; 0 if nothing spills."""
    latency: Latency
    last_error: str | None
    last_error_us: int | None
    """When that was, in microseconds since 1970."""
    connected: bool
    dead_letter_file: str | None

    @property
    def is_balanced(self) -> bool:
        """Whether every accepted event is in exactly one place, as it always must be."""
        settled = self.acknowledged + self.dead_lettered + self.dropped
        places = self.in_memory + self.in_flight + self.spilled
        return self.accepted == settled + self.waiting and self.waiting == places


@dataclass(frozen=True)
class Remainder:
    """What a bus had not delivered when its publisher was closed."""

    left: int
    """Events."""
    kept_in: str | None
    """The directory from which the next publisher sends them; `None` if they are lost."""


@dataclass(frozen=True)
class BusCheck:
    """What came of trying the connection of a bus."""

    bus: str
    ok: bool
    peer: str | None
    """Who answered."""
    warnings: tuple[str, ...]
    error: str | None


def read_stats(text: str) -> dict[str, BusStats]:
    """Read what the core says of its buses."""
    return {bus: _bus_stats(figures) for bus, figures in json.loads(text).items()}


def _bus_stats(figures: dict[str, Any]) -> BusStats:
    histogram = figures["latency"]
    latency = Latency(
        tuple(histogram["bounds"]), tuple(histogram["buckets"]), histogram["sum_seconds"]
    )
    # What a newer core says in addition is passed over.
    known = {field.name: figures[field.name] for field in fields(BusStats)}
    return BusStats(**known | {"latency": latency})


def read_remainders(text: str) -> dict[str, Remainder]:
    """Read what the core says when it is closed."""
    return {bus: Remainder(left["left"], left["kept_in"]) for bus, left in json.loads(text).items()}


def read_checks(text: str) -> list[BusCheck]:
    """Read what the core says after trying the connections."""
    return [
        BusCheck(
            bus=check["bus"],
            ok=check["ok"],
            peer=check["peer"],
            warnings=tuple(check["warnings"]),
            error=check["error"],
        )
        for check in json.loads(text)
    ]
