"""What tasks that publish give back: their ledgers, and the rows that were not published."""

from __future__ import annotations

import os
import socket
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import TaskContext

if TYPE_CHECKING:
    from tardis_fast.bus_stats import BusStats
    from tardis_fast.spark.rejected_rows import RejectedRow

LEDGER = pa.schema(
    [
        pa.field("run", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("attempt", pa.int32()),
        pa.field("process", pa.string()),
        pa.field("bus", pa.string()),
        pa.field("accepted", pa.int64()),
        pa.field("acknowledged", pa.int64()),
        pa.field("dead_lettered", pa.int64()),
        pa.field("dropped", pa.int64()),
        pa.field("retried", pa.int64()),
        pa.field("possibly_duplicated", pa.int64()),
        pa.field("quarantined", pa.int64()),
        pa.field("seconds", pa.float64()),
    ]
)
"""A row for each partition and bus.

`possibly_duplicated` are the acknowledged events of a task that had to be run again, since its
earlier attempts may have published them as well. `quarantined` are rows that gave no event; they
are missing on every bus and counted for each.
"""

QUARANTINE = pa.schema(
    [
        pa.field("row", pa.int64()),
        pa.field("reason", pa.string()),
        pa.field("content", pa.string()),
    ]
)

RESULT = pa.schema([*LEDGER, *QUARANTINE, pa.field("kind", pa.string())])
"""Rows of both kinds, `ledger` and `quarantine`."""

_COUNTED = ("accepted", "acknowledged", "dead_lettered", "dropped", "retried")


@dataclass
class TaskAccount:
    """Who publishes, and what came of it."""

    run: str
    partition: int = 0
    attempt: int = 0
    process: str = field(default_factory=lambda: f"{socket.gethostname()}:{os.getpid()}")
    quarantined: int = 0
    started: float = field(default_factory=time.monotonic)

    @classmethod
    def of_task(cls, run: str) -> TaskAccount:
        """Begin the account of the task that runs here."""
        task = TaskContext.get()
        if task is None:
            return cls(run)
        return cls(run, task.partitionId(), task.attemptNumber())

    def _place(self) -> dict[str, Any]:
        return {
            "run": self.run,
            "partition": self.partition,
            "attempt": self.attempt,
            "process": self.process,
        }

    def quarantine(self, rows: list[RejectedRow]) -> list[dict[str, Any]]:
        """Count rows that are set aside, and return what is kept of them."""
        self.quarantined += len(rows)
        return [
            self._place()
            | {"kind": "quarantine", "row": row.row, "reason": row.reason, "content": row.content}
            for row in rows
        ]

    def ledger(
        self, before: dict[str, BusStats], after: dict[str, BusStats]
    ) -> list[dict[str, Any]]:
        """Return a row for each bus."""
        rows = []
        for bus, stats in after.items():
            counts = {name: getattr(stats, name) - getattr(before[bus], name) for name in _COUNTED}
            rows.append(
                self._place()
                | counts
                | {
                    "kind": "ledger",
                    "bus": bus,
                    "possibly_duplicated": counts["acknowledged"] if self.attempt else 0,
                    "quarantined": self.quarantined,
                    "seconds": time.monotonic() - self.started,
                }
            )
        return rows

    def empty_ledger(self, buses: tuple[str, ...]) -> list[dict[str, Any]]:
        """Return the rows of a task that had nothing to publish."""
        zeros = dict.fromkeys((*_COUNTED, "possibly_duplicated"), 0)
        return [
            self._place()
            | zeros
            | {
                "kind": "ledger",
                "bus": bus,
                "quarantined": self.quarantined,
                "seconds": time.monotonic() - self.started,
            }
            for bus in buses
        ]
