"""Brokers that are cut off, slowed down, stopped and killed lose nothing and mix nothing up."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from faults.account import account
from faults.child import ProducerProcess
from faults.stages import BUSES, own_stage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from brokers.toxiproxy import Toxiproxy
    from faults.stage import Stage

SLOW = {"sqs", "kinesis"}
KEYS = 40
MEMORY_MB = 8


@dataclass(frozen=True)
class Extent:
    """How much is sent, and how long faults last."""

    events: int
    seconds: float
    fault: float
    pause: float
    rounds: int

    @classmethod
    def of(cls, config: pytest.Config, bus: str) -> Extent:
        """Return the extent that the command line asks for."""
        if config.getoption("--faults") == "long":
            events = 6_000 if bus in SLOW else 300_000
            return cls(events, seconds=120, fault=2, pause=15, rounds=3)
        events = 1_000 if bus in SLOW else 20_000
        return cls(events, seconds=8, fault=0.5, pause=1.5, rounds=1)


@pytest.fixture(params=BUSES)
def stage(
    request: pytest.FixtureRequest, toxiproxy: Toxiproxy, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stage]:
    """Put a bus on the stage, with a broker of its own."""
    stage = own_stage(request.param, tmp_path_factory.mktemp("broker"), toxiproxy)
    yield stage
    stage.broker.kill()
    stage.proxy.delete()


def order_for(stage: Stage, **changes: Any) -> dict[str, Any]:
    """Return what a producer is told to do."""
    delivery = {
        "max_memory_mb": MEMORY_MB,
        "max_block_ms": 200,
        "retry_backoff_ms": 20,
        "retry_backoff_max_ms": 500,
    }
    order: dict[str, Any] = {
        "bus": stage.bus,
        "options": stage.options(),
        "first": 1,
        "keys": KEYS,
        "seconds": 0,
        "padding": 50,
        "flush_seconds": 600,
        "drain_seconds": 30,
    }
    order["delivery"] = delivery | changes.pop("delivery", {})
    return order | changes


def disturb(stage: Stage, extent: Extent) -> None:
    """Make everything go wrong, one thing after the other."""
    proxy = stage.proxy
    for _ in range(extent.rounds):
        toxic = proxy.add("latency", latency=100, jitter=50)
        time.sleep(extent.fault)
        toxic.remove()
        proxy.down()
        time.sleep(extent.fault)
        proxy.up()
        time.sleep(extent.fault)
        toxic = proxy.add("reset_peer", timeout=50)
        time.sleep(extent.fault)
        toxic.remove()
        toxic = proxy.add("limit_data", stream="upstream", bytes=20_000)
        time.sleep(extent.fault)
        toxic.remove()
        toxic = proxy.add("slow_close", delay=300)
        stage.broker.pause()
        time.sleep(extent.pause)
        stage.broker.resume()
        toxic.remove()
        time.sleep(extent.fault)
        stage.restart()
        time.sleep(extent.fault)


def report(stage: Stage, answer: dict[str, Any], text: str) -> None:
    """Print one line of figures."""
    stats, watch = answer["stats"], answer["watch"]
    rss = watch["rss"]
    print(  # noqa: T201 - figures for whoever runs it with -s
        f"\n{stage.bus}: {text}; retried {stats['retried']}, spilled {stats['spilled_total']}, "
        f"ledger samples {watch['samples']}, longest publish {watch['longest_publish']:.2f} s, "
        f"RSS {rss[0] >> 20} -> {max(rss) >> 20} MB"
    )


def assert_sound(answer: dict[str, Any], events: int) -> None:
    """Check the ledger at every sample and at the end."""
    stats, watch = answer["stats"], answer["watch"]
    assert answer["flushed"], stats
    assert (watch["unbalanced"], watch["over_bound"]) == (0, 0)
    assert (stats["accepted"], stats["acknowledged"]) == (events, events), stats
    assert (stats["dead_lettered"], stats["dropped"], stats["waiting"]) == (0, 0, 0)
    assert answer["left"] == 0


def test_nothing_is_lost_or_overtaken_through_faults(
    stage: Stage, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    extent = Extent.of(request.config, stage.bus)
    order = order_for(stage, events=extent.events, seconds=extent.seconds)
    with ProducerProcess(order, tmp_path) as producer:
        disturb(stage, extent)
        producer.answer()
        producer.go_on()
        answer = producer.answer()
        log = producer.log()
    stage.collect()
    arrived = account(stage.arrived, range(1, extent.events + 1))
    report(stage, answer, f"{arrived.events} events, {arrived.duplicates} duplicates")
    assert arrived.is_whole, (arrived, log[-2000:])
    assert_sound(answer, extent.events)


def test_an_outage_from_the_start_is_bridged_by_the_spill_also_after_sigkill(
    stage: Stage, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    extent = Extent.of(request.config, stage.bus)
    is_long = extent.rounds > 1
    events = extent.events // 2
    # So little memory that most of it goes to the spill.
    delivery = {"max_memory_mb": 1, "max_block_ms": 50}
    order = order_for(stage, events=events, padding=4_000, delivery=delivery)
    stage.proxy.down()
    with ProducerProcess(order, tmp_path) as producer:
        # It ends publishing while the broker is away: it did not wait for it.
        told = producer.answer()["stats"]
        assert told["accepted"] == events
        spilled = told["spilled"]
        assert spilled > events // 4, told
        if is_long:
            time.sleep(60)
        producer.kill()
    # What was in memory is gone with the process; the next one begins with what was spilled.
    order |= {"first": events + 1}
    with ProducerProcess(order, tmp_path) as producer:
        producer.answer()
        stage.proxy.up()
        producer.go_on()
        answer = producer.answer()
    assert_sound(answer, spilled + events)
    stage.collect()
    numbers = sorted({number for _, number in stage.arrived})
    arrived = account(stage.arrived, range(events + 1, 2 * events + 1))
    report(stage, answer, f"{spilled} spilled before SIGKILL, {arrived.events} arrived")
    assert arrived.is_whole, arrived
    # Of the killed process everything spilled arrived: its last numbers, without a gap.
    of_killed = [number for number in numbers if number <= events]
    assert of_killed == list(range(events - spilled + 1, events + 1))
