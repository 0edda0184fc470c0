"""`/metrics`: the figures of sessions and buses as Prometheus reads them."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tardis_fast.publisher import BusStats, Publisher
    from tardis_fast.server.sessions import Sessions

CONTENT_TYPE = CONTENT_TYPE_LATEST

_BUS_COUNTERS = {
    "accepted": "Events taken in.",
    "accepted_bytes": "Bytes of the events taken in.",
    "acknowledged": "Events that the broker has.",
    "retried": "How many times events were sent again.",
    "dead_lettered": "Events in the dead-letter file.",
    "dropped": "Events given up because the policy is drop.",
    "spilled_total": "How many times events went to disk.",
}
_BUS_GAUGES = {
    "waiting": "Events neither acknowledged, dead-lettered nor dropped.",
    "spilled": "Events that wait on disk.",
    "in_memory": "Events that wait in memory.",
    "in_memory_bytes": "Bytes of the events that wait in memory.",
    "in_flight": "Events sent and not yet answered.",
    "in_flight_bytes": "Bytes of the events sent and not yet answered.",
    "connected": "1 while the bus is connected.",
}


class Metrics(Collector):
    """Reads the figures when they are asked for."""

    def __init__(self, sessions: Sessions, publisher: Publisher | None) -> None:
        self._sessions = sessions
        self._publisher = publisher
        self.refused = 0
        """Requests that were refused before a session began."""
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    def text(self) -> bytes:
        """Return all figures as text."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        """Give the figures of this moment."""
        yield from self._session_metrics()
        if self._publisher is not None:
            yield from _bus_metrics(self._publisher.stats())

    def _session_metrics(self) -> Iterator[Metric]:
        sessions = self._sessions
        running = GaugeMetricFamily(
            "tardis_fast_sessions_running", "Sessions that run.", labels=["endpoint"]
        )
        counts: dict[str, int] = {}
        for session in sessions.running.values():
            counts[session.endpoint] = counts.get(session.endpoint, 0) + 1
        for endpoint, count in counts.items():
            running.add_metric([endpoint], count)
        yield running
        ended = CounterMetricFamily(
            "tardis_fast_sessions", "Sessions that ended.", labels=["endpoint", "state"]
        )
        for (endpoint, state), count in sessions.by_outcome.items():
            ended.add_metric([endpoint, state], count)
        yield ended
        for name, text, figures in (
            ("tardis_fast_messages", "Messages sent to clients.", sessions.messages),
            ("tardis_fast_bytes", "Bytes sent to clients.", sessions.bytes),
        ):
            sent = CounterMetricFamily(name, text, labels=["endpoint"])
            for endpoint, count in figures.items():
                sent.add_metric([endpoint], count)
            yield sent
        yield CounterMetricFamily(
            "tardis_fast_requests_refused", "Requests that were refused.", value=self.refused
        )


def _bus_metrics(stats: Mapping[str, BusStats]) -> Iterator[Metric]:
    for field, text in _BUS_COUNTERS.items():
        name = f"tardis_fast_bus_{field.removesuffix('_total')}"
        counter = CounterMetricFamily(
            name if field != "spilled_total" else f"{name}_events", text, labels=["bus"]
        )
        for bus, figures in stats.items():
            counter.add_metric([bus], getattr(figures, field))
        yield counter
    for field, text in _BUS_GAUGES.items():
        gauge = GaugeMetricFamily(f"tardis_fast_bus_{field}", text, labels=["bus"])
        for bus, figures in stats.items():
            gauge.add_metric([bus], getattr(figures, field))
        yield gauge
    latency = HistogramMetricFamily(
        "tardis_fast_bus_ack_latency_seconds", "From sending to the answer.", labels=["bus"]
    )
    for bus, figures in stats.items():
        bounds = [*(str(bound) for bound in figures.latency.bounds), "+Inf"]
        cumulative = list(accumulate(figures.latency.buckets))
        buckets = list(zip(bounds, cumulative, strict=True))
        latency.add_metric([bus], buckets, sum_value=figures.latency.sum_seconds)
    yield latency
