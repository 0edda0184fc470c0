"""The processes of a cluster tell one another their figures, so that each can answer for all.

Each listens on a UNIX socket in a directory that they share, and answers whoever connects with its
own figures as JSON. One that does not answer is left out.
"""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from prometheus_client.core import Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from tardis_fast.server.sessions import MESSAGES_SHOWN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

_PATIENCE_SECONDS = 2.0
_LAST_ERROR = ("last_error", "last_error_us", "last_error_at")
_EARLIEST = "process_start_time_seconds"
"""The figure that is not a sum, but the least of all."""


class Siblings:
    """A process among the others of its cluster."""

    def __init__(self, directory: Path, own: Callable[[], Mapping[str, Any]]) -> None:
        self._directory = directory
        self._path = directory / f"{os.getpid()}.sock"
        self._own = own
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Answer the others from now on."""
        self._server = await asyncio.start_unix_server(self._answer, self._path)

    async def stop(self) -> None:
        """Answer nobody any more."""
        if self._server is not None:
            self._server.close()
            self._path.unlink(missing_ok=True)

    async def _answer(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            writer.write(json.dumps(self._own()).encode())
            await writer.drain()
        writer.close()

    async def figures(self) -> list[Mapping[str, Any]]:
        """Return the figures of all, with its own as the first."""
        paths = [path for path in self._directory.glob("*.sock") if path != self._path]
        answers = await asyncio.gather(*map(_ask, paths))
        return [self._own(), *(answer for answer in answers if answer is not None)]


async def _ask(path: Path) -> Mapping[str, Any] | None:
    try:
        return await asyncio.wait_for(_read(path), _PATIENCE_SECONDS)
    except (OSError, ValueError, asyncio.TimeoutError):
        # It ended, or has too much to do; it is not worth an error of the page.
        return None


async def _read(path: Path) -> Mapping[str, Any]:
    reader, writer = await asyncio.open_unix_connection(path)
    try:
        figures: Mapping[str, Any] = json.loads(await reader.read())
    finally:
        writer.close()
    return figures


def merged_status(each: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the status of all processes as that of one."""
    sessions = [session for one in each for session in one["sessions"]]
    running = [session for session in sessions if session["state"] == "running"]
    ended = [session for session in sessions if session["state"] != "running"]
    buses: dict[str, dict[str, Any]] = {}
    for bus in (bus for one in each for bus in one["buses"]):
        buses[bus["name"]] = _merged_bus(buses[bus["name"]], bus) if bus["name"] in buses else bus
    return {
        **each[0],
        "processes": len(each),
        "uptimeSeconds": max(one["uptimeSeconds"] for one in each),
        "memoryMB": round(sum(one["memoryMB"] for one in each), 1),
        "cpuSeconds": round(sum(one["cpuSeconds"] for one in each), 3),
        "totals": {name: sum(one["totals"][name] for one in each) for name in each[0]["totals"]},
        "sessions": running + sorted(ended, key=lambda one: str(one["endedAt"]), reverse=True),
        "buses": list(buses.values()),
        "events": [event for one in each for event in one["events"]][-MESSAGES_SHOWN:],
    }


def _merged_bus(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    latency, more = one["latency"], other["latency"]
    figures = {
        name: value + other[name]
        for name, value in one.items()
        if isinstance(value, int) and not isinstance(value, bool) and name not in _LAST_ERROR
    }
    failed_last = max(one, other, key=lambda bus: bus["last_error_us"] or 0)
    return {
        **one,
        **figures,
        **{name: failed_last[name] for name in _LAST_ERROR},
        "connected": one["connected"] and other["connected"],
        "dead_letter_file": one["dead_letter_file"] or other["dead_letter_file"],
        "latency": {
            "bounds": latency["bounds"],
            "buckets": [a + b for a, b in zip(latency["buckets"], more["buckets"], strict=True)],
            "sum_seconds": latency["sum_seconds"] + more["sum_seconds"],
        },
    }


class _Merged(Collector):
    """Metrics that are made already."""

    def __init__(self, metrics: Mapping[str, Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        """Give them."""
        yield from self._metrics.values()


def merged_metrics(each: Sequence[str]) -> bytes:
    """Return the metrics of all processes as those of one: sums."""
    metrics: dict[str, Metric] = {}
    values: dict[tuple[str, str, tuple[tuple[str, str], ...]], float] = {}
    for text in each:
        for family in text_string_to_metric_families(text):
            metrics.setdefault(family.name, Metric(family.name, family.documentation, family.type))
            for sample in family.samples:
                key = (family.name, sample.name, tuple(sorted(sample.labels.items())))
                before = values.get(key)
                values[key] = (
                    sample.value
                    if before is None
                    else min(before, sample.value)
                    if sample.name == _EARLIEST
                    else before + sample.value
                )
    for (family_name, name, labels), value in values.items():
        metrics[family_name].add_sample(name, dict(labels), value)
    return generate_latest(_Merged(metrics))
