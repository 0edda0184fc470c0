"""What `GET /status` says, made up: one more second passes with each answer."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from datetime import datetime, timedelta, timezone
from importlib.resources import files
from typing import Any

from tardis_fast.bus_stats import BusStats, Latency

START = datetime(2026, 11, 16, 18, 0, tzinfo=timezone.utc)
MARKET = datetime(2024, 3, 1, tzinfo=timezone.utc)
SECONDS_BEFORE = 100
"""How long the server had been up at the first answer, less one second."""


def iso(moment: datetime) -> str:
    """Write a time as the server does."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.000Z")


def status(answer: int, **changes: Any) -> dict[str, Any]:
    """Return the status of a server that is up, with what a test wants to be different."""
    seconds = SECONDS_BEFORE + answer
    return {
        "name": "tardis-fast",
        "version": "0.1.0",
        "now": iso(START + timedelta(seconds=seconds)),
        "uptimeSeconds": float(seconds),
        "processes": 1,
        "memoryMB": 84.1,
        "cpuSeconds": 0.42 * seconds,
        "totals": {
            "requests": 7,
            "refused": 0,
            "messages": 6_000 * seconds,
            "bytes": 1_250_000 * seconds,
            "sessionsRunning": 0,
            "sessionsMax": 1000,
        },
        "sessions": [],
        "buses": [],
        "events": [],
    } | changes


def session(name: str, **changes: Any) -> dict[str, Any]:
    """Return a session that runs and has not sent anything."""
    return {
        "id": name,
        "endpoint": "/replay-normalized",
        "transport": "http",
        "client": "127.0.0.1:50412",
        "state": "running",
        "startedAt": iso(START + timedelta(seconds=SECONDS_BEFORE - 20)),
        "endedAt": None,
        "exchanges": ["bitmex"],
        "symbols": ["XBTUSD"],
        "dataTypes": ["trade", "book_change"],
        "from": iso(MARKET),
        "to": iso(MARKET + timedelta(hours=1)),
        "messages": 0,
        "bytes": 0,
        "progress": None,
        "live": None,
        "error": None,
    } | changes


def progress(minutes: int, total: int) -> dict[str, Any]:
    """Return how far a replay is."""
    return {
        "slices": minutes // 10,
        "slices_total": total // 10,
        "minutes": minutes,
        "minutes_total": total,
        "downloaded_bytes": 0,
        "compressed_bytes": 0,
        "bytes": 0,
        "messages": 0,
        "market_time": iso(MARKET + timedelta(minutes=minutes)),
    }


def live(**changes: Any) -> dict[str, Any]:
    """Return a stream's connections, all of them up."""
    up = {"connections": 2, "connected": 2, "reconnects": 0, "errors": 0, "last_error": None}
    return up | changes


def bus(name: str, **changes: Any) -> dict[str, Any]:
    """Return a bus that is connected and took nothing in."""
    nothing = BusStats(
        accepted=0,
        accepted_bytes=0,
        acknowledged=0,
        retried=0,
        dead_lettered=0,
        spilled=0,
        spilled_bytes=0,
        spilled_total=0,
        dropped=0,
        in_memory=0,
        in_memory_bytes=0,
        in_flight=0,
        in_flight_bytes=0,
        waiting=0,
        memory_limit_bytes=128_000_000,
        spill_limit_bytes=10_240_000_000,
        latency=Latency((0.001, 0.005, 0.01, 0.1, 1.0, 10.0), (0,) * 7, 0.0),
        last_error=None,
        last_error_us=None,
        connected=True,
        dead_letter_file=None,
    )
    return {"name": name} | asdict(nothing) | {"last_error_at": None} | changes


def events(answer: int) -> list[dict[str, Any]]:
    """Return eight messages of the samples, other ones with each answer."""
    lines = files("tardis_fast").joinpath("samples/messages.jsonl").read_text().splitlines()
    first = answer % len(lines)
    return [json.loads(line) for line in (lines + lines)[first : first + 8]]


def busy(answer: int) -> dict[str, Any]:
    """Return the status of a server with work of every kind on its hands."""
    seconds = SECONDS_BEFORE + answer
    sent = 3_000 * seconds
    accepted = 5_900 * seconds
    behind = 40_000 + 900 * answer
    sessions = [
        session(
            "r-1",
            messages=sent,
            bytes=625_000 * seconds,
            progress=progress(min(60, 20 + answer // 4), 60),
        ),
        session(
            "s-1",
            endpoint="/ws-stream-normalized",
            transport="ws",
            client="10.0.3.7:41022",
            exchanges=["binance-futures"],
            symbols=["BTCUSDT", "ETHUSDT", "SOLUSDT", "XRPUSDT", "DOGEUSDT"],
            dataTypes=["trade", "book_snapshot_20_100ms", "trade_bar_10s"],
            messages=90 * seconds,
            bytes=31_000 * seconds,
            live=live(connected=1, reconnects=3, errors=3, last_error="wss: connection reset"),
        ),
        session(
            "r-2",
            state="finished",
            endpoint="/ws-replay-normalized",
            transport="ws",
            endedAt=iso(START + timedelta(seconds=SECONDS_BEFORE)),
            messages=120_000,
            bytes=40_000_000,
            exchanges=["deribit", "okex"],
            symbols=[],
            progress=progress(30, 30),
        ),
        session(
            "r-3",
            state="failed",
            endedAt=iso(START + timedelta(seconds=SECONDS_BEFORE - 5)),
            messages=8_212,
            bytes=1_402_000,
            progress=progress(13, 60),
            error="slice 2024-03-01T00:13 of bitmex: the API answered 401: "
            "'Unauthorized'; give a key with --api-key",
        ),
    ]
    healthy = bus(
        "kafka",
        accepted=accepted,
        accepted_bytes=accepted * 180,
        acknowledged=accepted - 4_200,
        waiting=4_200,
        in_memory=3_000,
        in_memory_bytes=540_000,
        in_flight=1_200,
        in_flight_bytes=216_000,
        latency=asdict(
            Latency(
                (0.001, 0.005, 0.01, 0.1, 1.0, 10.0),
                (0, 4_000 * seconds, 1_700 * seconds, 100 * seconds, 0, 0, 0),
                40.0,
            )
        ),
    )
    struggling = bus(
        "nats",
        connected=False,
        accepted=accepted,
        accepted_bytes=accepted * 180,
        acknowledged=accepted - behind - 3,
        retried=812,
        dead_lettered=3,
        waiting=behind,
        in_memory=30_000,
        in_memory_bytes=112_000_000,
        spilled=behind - 30_000,
        spilled_total=behind,
        latency=asdict(
            Latency(
                (0.001, 0.005, 0.01, 0.1, 1.0, 10.0),
                (0, 0, 1_000 * seconds, 3_000 * seconds, 1_000 * seconds, 0, 0),
                900.0,
            )
        ),
        last_error="connection to 127.0.0.1:4222 refused; is the server up?",
        last_error_at=iso(START + timedelta(seconds=SECONDS_BEFORE - 40)),
        dead_letter_file="/var/lib/tardis-fast/dead-letters/nats.jsonl",
        spilled_bytes=(behind - 30_000) * 190,
    )
    state = status(answer, sessions=sessions, buses=[healthy, struggling], events=events(answer))
    state["totals"]["sessionsRunning"] = 2
    # Waves, so that the line of the last two minutes has a shape.
    state["totals"]["messages"] += round(9_000 * math.sin(answer / 5) + 1_500 * math.sin(answer))
    return state
