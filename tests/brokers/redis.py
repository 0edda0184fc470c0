"""Redis, with its append-only file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from redis import Redis

from brokers.broker import Broker
from brokers.certificates import make_certificates
from brokers.ports import free_port
from brokers.program import Program

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class RedisBroker(Broker):
    """A Redis server that keeps its data over restarts.

    `password` is asked of everyone, of `user` as well, whom the server knows only if it is given
    (by ACL, with all rights). `settings` are added to its redis.conf.

    Killed, it still has everything that it acknowledged (appendfsync always). Redis' own default,
    everysec, does not promise that: while a slow disk syncs, commands are acknowledged that were
    not even written.
    """

    def __init__(
        self,
        directory: Path,
        *,
        password: str | None = None,
        user: str | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(directory)
        if user is not None and password is None:
            raise ValueError("a user needs a password")
        self._password = password
        self._user = user
        self._settings = dict(settings or {})
        self.port = free_port()
        self.tls_port = free_port()
        self.certificates = make_certificates(directory / "certificates")

    @property
    def address(self) -> str:
        """Host and port without TLS."""
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """With user and password, if there are any."""
        return f"redis://{self._login()}{self.address}"

    @property
    def tls_url(self) -> str:
        """As `url`, with TLS by `certificates`."""
        return f"rediss://{self._login()}127.0.0.1:{self.tls_port}"

    def _login(self) -> str:
        return "" if self._password is None else f"{self._user or ''}:{self._password}@"

    def _program(self) -> Program:
        lines = {
            "bind": "127.0.0.1",
            "port": str(self.port),
            "tls-port": str(self.tls_port),
            "tls-cert-file": str(self.certificates.certificate),
            "tls-key-file": str(self.certificates.key),
            "tls-ca-cert-file": str(self.certificates.authority),
            "tls-auth-clients": "no",
            "dir": str(self.directory),
            "save": '""',
            "appendonly": "yes",
            "appendfsync": "always",
            **self._settings,
        }
        if self._password is not None:
            lines["requirepass"] = self._password
        if self._user is not None:
            lines["user"] = f"{self._user} on >{self._password} ~* &* +@all"
        config = self.directory / "redis.conf"
        config.write_text("".join(f"{name} {text}\n" for name, text in lines.items()))
        command = ["redis-server", str(config)]
        return Program(command=command, image="redis:7.4", container_command=command)

    def _is_ready(self) -> bool:
        with Redis.from_url(self.url, socket_timeout=2) as client:
            return bool(client.ping())
