"""Toxiproxy: stands between a client and a broker, and makes their connection a bad one."""

from __future__ import annotations

import http.client
import itertools
import json
from typing import TYPE_CHECKING, Any, Literal

from brokers.broker import Broker
from brokers.ports import free_port
from brokers.program import Program, install_directory

if TYPE_CHECKING:
    from pathlib import Path

ToxicKind = Literal["latency", "reset_peer", "timeout", "slow_close", "limit_data", "bandwidth"]


class Toxiproxy(Broker):
    """A Toxiproxy server; its proxies are gone when it ends."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._port = free_port()
        self._names = itertools.count()

    def proxy(self, upstream: str, listen: str | None = None) -> Proxy:
        """Put a proxy in front of `upstream`, on `listen` or any free port of 127.0.0.1."""
        name = f"proxy-{next(self._names)}"
        address = listen or f"127.0.0.1:{free_port()}"
        self.call("POST", "/proxies", {"name": name, "listen": address, "upstream": upstream})
        return Proxy(self, name, address)

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """Make one request to Toxiproxy's HTTP API; return what it answers."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=10)
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            response = connection.getresponse()
            text = response.read()
        finally:
            connection.close()
        if response.status >= http.HTTPStatus.BAD_REQUEST:
            raise RuntimeError(f"Toxiproxy: {method} {path}: {response.status} {text.decode()}")
        return json.loads(text) if text.startswith((b"{", b"[")) else None

    def _program(self) -> Program:
        arguments = ["-host", "127.0.0.1", "-port", str(self._port)]
        return Program(
            command=[str(install_directory() / "bin" / "toxiproxy-server"), *arguments],
            image="ghcr.io/shopify/toxiproxy:2.12.0",
            container_command=["/toxiproxy", *arguments],
        )

    def _is_ready(self) -> bool:
        self.call("GET", "/version")
        return True


class Proxy:
    """One proxy: a port that leads to a broker."""

    def __init__(self, server: Toxiproxy, name: str, address: str) -> None:
        self.address = address
        """Where clients connect to."""
        self._server = server
        self._path = f"/proxies/{name}"
        self._names = itertools.count()

    def down(self) -> None:
        """Close every connection and refuse new ones."""
        self._server.call("POST", self._path, {"enabled": False})

    def up(self) -> None:
        """Let connections through again."""
        self._server.call("POST", self._path, {"enabled": True})

    def add(
        self,
        kind: ToxicKind,
        *,
        stream: Literal["upstream", "downstream"] = "downstream",
        toxicity: float = 1.0,
        **attributes: int,
    ) -> Toxic:
        """Add a toxic, upstream (to the broker) or downstream (to the client).

        Attributes by kind: `latency` and `jitter` of latency (ms), `timeout` of timeout and
        reset_peer (ms), `delay` of slow_close (ms), `bytes` of limit_data, `rate` of bandwidth
        (KB/s). `toxicity` is the share of connections that get it.
        """
        name = f"{kind}-{next(self._names)}"
        body = {"name": name, "type": kind, "stream": stream, "toxicity": toxicity}
        self._server.call("POST", f"{self._path}/toxics", {**body, "attributes": attributes})
        return Toxic(self._server, f"{self._path}/toxics/{name}")

    def delete(self) -> None:
        """Close the proxy's connections and its port."""
        self._server.call("DELETE", self._path)


class Toxic:
    """One thing that is wrong with a connection."""

    def __init__(self, server: Toxiproxy, path: str) -> None:
        self._server = server
        self._path = path

    def remove(self) -> None:
        """Heal the connection of this toxic."""
        self._server.call("DELETE", self._path)
