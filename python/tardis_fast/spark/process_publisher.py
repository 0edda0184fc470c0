"""The publisher of an executor's Python process: made by its first task, used by all that follow.

Spark ends such processes by killing them, so nothing may be left to the end: every task waits for
the acknowledgement of all its events before it is done. For the same reason nothing waits on an
executor's disk unless the user names a directory for it, and dead letters are taken from the disk
as soon as they are there.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tardis_fast._core import (
    ConfigError,
    DeadLetterReader,
    EventBatches,
    TardisFastError,
    check_options,
)
from tardis_fast.options import DeliveryOptions, Settings
from tardis_fast.options.settings import NO_BUS
from tardis_fast.publisher import Publisher

if TYPE_CHECKING:
    import pyarrow as pa

    from tardis_fast.bus_stats import BusStats

DELIVERY_TIMEOUT_MS = 300_000
"""A task that gets no further fails, and Spark tries again, elsewhere perhaps."""


def executor_settings(settings: Settings) -> Settings:
    """Check settings on the driver and return those for executors."""
    if not settings.buses:
        raise ConfigError(NO_BUS)
    given = {known.field: value for known, value in settings.delivery.given()}
    if given.get("overflow") == "drop":
        raise ConfigError(
            "overflow: `drop` loses events, and a task that loses events fails; leave it out: "
            "tasks wait for room"
        )
    if "dead_letter_dir" in given:
        raise ConfigError(
            "dead_letter_dir: executors keep no dead letters; they fail the job, or come back with "
            "quarantine= and allow_dead_letters=True"
        )
    if given.get("spill") is None and "state_dir" not in given and "spill_dir" not in given:
        given["spill"] = False
    given.setdefault("delivery_timeout_ms", DELIVERY_TIMEOUT_MS)
    prepared = replace(settings, delivery=DeliveryOptions(**given))
    # Buses, routes and templates are checked as well.
    check_options(prepared.to_core())
    return prepared


def _publisher(settings: Settings, dead_letters: Path) -> Publisher:
    values = {known.field: value for known, value in settings.delivery.given()}
    delivery = DeliveryOptions(**values | {"dead_letter_dir": str(dead_letters)})
    return Publisher.of_settings(replace(settings, delivery=delivery))


@dataclass(frozen=True)
class DeadLetters:
    """Events that cannot be delivered."""

    batches: tuple[pa.RecordBatch, ...]
    """With the columns `reason`, `payload_case` and `event`."""

    def __len__(self) -> int:
        return sum(batch.num_rows for batch in self.batches)

    @property
    def first_reason(self) -> str:
        """Why the first of them is dead."""
        return next((str(batch.column("reason")[0]) for batch in self.batches), "unknown")


class ProcessPublisher:
    """The publisher of this process for some settings."""

    _of_process: dict[tuple[int, str], ProcessPublisher] = {}  # noqa: RUF012 - shared by all tasks

    @classmethod
    def of(cls, settings: Settings) -> ProcessPublisher:
        """Return the one that is there, or a new one: not across a fork."""
        key = os.getpid(), settings.to_core() + repr(settings.bronze)
        if key not in cls._of_process:
            cls._of_process[key] = cls(settings, key)
        return cls._of_process[key]

    def __init__(self, settings: Settings, key: tuple[int, str]) -> None:
        self._key = key
        name = f"tardis-fast-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self._directory = Path(tempfile.gettempdir()) / name
        self._publisher = _publisher(settings, self._directory)
        self._before = self._publisher.stats()

    def start_task(self) -> None:
        """Let go of what a task that failed left behind, so that it counts for that one."""
        self._publisher.flush()
        self._before = self._publisher.stats()

    def publish(self, events: EventBatches) -> None:
        """Hand over events; waits while there is no room for them."""
        self._publisher.publish(events)

    def finish_task(self) -> tuple[dict[str, BusStats], dict[str, BusStats], DeadLetters]:
        """Wait for all acknowledgements; return the ledgers before and after, and dead letters."""
        if not self._publisher.flush():
            raise TardisFastError("not all events were acknowledged; the task must be run again")
        after = self._publisher.stats()
        if all(stats.dead_letter_file is None for stats in after.values()):
            return self._before, after, DeadLetters(())
        self._publisher.close(0)
        self._of_process.pop(self._key, None)
        files = [stats.dead_letter_file for stats in after.values() if stats.dead_letter_file]
        batches = tuple(batch for file in files for batch in DeadLetterReader(file))
        shutil.rmtree(self._directory, ignore_errors=True)
        return self._before, after, DeadLetters(batches)
