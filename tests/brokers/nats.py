"""NATS with JetStream."""

from __future__ import annotations

import http.client
import json
import socket
from typing import TYPE_CHECKING

from brokers.broker import Broker
from brokers.certificates import Certificates, make_certificates
from brokers.ports import free_port
from brokers.program import Program, install_directory

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class NatsBroker(Broker):
    """A NATS server whose streams survive a restart.

    It asks for `user` and `password`, or for `token`, or for nothing; with `tls`, clients must
    encrypt. `settings` are added to the top level of its configuration.
    """

    def __init__(  # noqa: PLR0913
        self,
        directory: Path,
        *,
        user: str | None = None,
        password: str | None = None,
        token: str | None = None,
        tls: bool = False,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(directory)
        self._authorization = {
            name: text
            for name, text in (("user", user), ("password", password), ("token", token))
            if text is not None
        }
        self._settings = dict(settings or {})
        self.port = free_port()
        self._monitor_port = free_port()
        self.certificates: Certificates | None = (
            make_certificates(directory / "certificates") if tls else None
        )

    @property
    def address(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """Without user, password or token: clients take these as options."""
        return f"{'tls' if self.certificates else 'nats'}://{self.address}"

    def _program(self) -> Program:
        config: dict[str, object] = {
            "listen": self.address,
            "http": f"127.0.0.1:{self._monitor_port}",
            "jetstream": {"store_dir": str(self.directory / "data")},
            **self._settings,
        }
        if self._authorization:
            config["authorization"] = self._authorization
        if self.certificates:
            config["tls"] = {
                "cert_file": str(self.certificates.certificate),
                "key_file": str(self.certificates.key),
            }
        file = self.directory / "nats.conf"
        # NATS' own format is a superset of JSON.
        file.write_text(json.dumps(config, indent=2))
        return Program(
            command=[str(install_directory() / "bin" / "nats-server"), "-c", str(file)],
            image="nats:2.15.2",
            container_command=["nats-server", "-c", str(file)],
        )

    def _is_ready(self) -> bool:
        with socket.create_connection(("127.0.0.1", self.port), timeout=2) as client:
            if not client.recv(4096).startswith(b"INFO "):
                return False
        monitor = http.client.HTTPConnection("127.0.0.1", self._monitor_port, timeout=2)
        try:
            # Also says whether JetStream has read its streams back.
            monitor.request("GET", "/healthz")
            return monitor.getresponse().status == http.HTTPStatus.OK
        finally:
            monitor.close()
