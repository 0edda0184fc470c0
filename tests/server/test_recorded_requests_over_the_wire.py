"""Recorded requests over HTTP and WebSocket give the recorded bytes and close codes."""

from __future__ import annotations

import hashlib
import json
import warnings
from pathlib import Path
from typing import Any

from replay.slices_api import SlicesApi
from server.running import RunningMachine
from tardis_fast import TardisMachine

CONFORMANCE = Path(__file__).parents[3] / "shared" / "conformance" / "e2e"


def fault(running: RunningMachine, request: dict[str, Any], port: int) -> str | None:
    """Return what is wrong with the answer to a request, if something is."""
    path, options = request["path"], request["options"]
    if request["transport"] == "http":
        status, headers, body = running.replay(path, options)
        if (status, headers["Content-Type"]) != (request["status"], "application/x-json-stream"):
            return f"{status} {headers}"
    else:
        messages, *closed = running.frames(path, options, port=port)
        if closed != request["close"]:
            return f"closed with {closed}"
        body = "".join(f"{message}\n" for message in messages).encode()
    if hashlib.sha256(body).hexdigest() != request["sha256"]:
        return f"{len(body)} bytes, expected {request['bytes']}"
    return None


def test_every_recorded_request_gives_the_recorded_answer(tmp_path: Path) -> None:
    if not CONFORMANCE.is_dir():
        warnings.warn(f"conformance data is not there: {CONFORMANCE}", stacklevel=1)
        return
    requests: list[dict[str, Any]] = json.loads((CONFORMANCE / "requests.json").read_text("utf-8"))
    assert {request["transport"] for request in requests} == {"http", "ws"}
    with SlicesApi(CONFORMANCE / "slices") as api:
        archive = {"endpoint": api.endpoint, "cache_dir": tmp_path / "cache"}
        with RunningMachine(TardisMachine(archive=archive)) as running:
            # WebSockets are taken on both ports.
            ports = (running.port, running.port + 1)
            faults = {
                request["name"]: fault(running, request, ports[number % 2])
                for number, request in enumerate(requests)
            }
    assert not {name: text for name, text in faults.items() if text is not None}
