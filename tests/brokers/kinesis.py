"""kinesis-mock, a server that speaks Kinesis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from brokers import aws
from brokers.broker import Broker
from brokers.ports import free_port
from brokers.program import Program, install_directory

if TYPE_CHECKING:
    from pathlib import Path


class KinesisBroker(Broker):
    """A Kinesis server, right for what it answers and not for how fast it does.

    It keeps everything in memory: streams and records are gone after `stop`, `kill` or `restart`,
    and not after `pause` and `resume`. Tests create the streams they need, of `shards` in all.
    """

    def __init__(self, directory: Path, *, shards: int = 200) -> None:
        super().__init__(directory)
        self._shards = shards
        self.port = free_port()
        self._tls_port = free_port()

    @property
    def address(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """The endpoint to give to a client of AWS."""
        return f"http://{self.address}"

    def client(self, url: str | None = None) -> Any:
        """Make a boto3 client, of `url` if that is given (a proxy's)."""
        return aws.client("kinesis", url or self.url)

    def stop(self) -> None:
        """End the server at once: if asked, it waits for idle connections, with nothing to keep."""
        if self.running:
            self.kill()

    def _program(self) -> Program:
        return Program(
            command=["node", "main.js"],
            image="ghcr.io/etspaceman/kinesis-mock:0.6.2",
            # It reads its TLS key from the folder it is started in.
            working_directory=install_directory() / "kinesis/node_modules/kinesis-local",
            environment={
                "KINESIS_MOCK_PLAIN_PORT": str(self.port),
                "KINESIS_MOCK_TLS_PORT": str(self._tls_port),
                "AWS_REGION": aws.REGION,
                "SHARD_LIMIT": str(self._shards),
                "LOG_LEVEL": "ERROR",
            },
        )

    def _is_ready(self) -> bool:
        self.client().list_streams()
        return True
