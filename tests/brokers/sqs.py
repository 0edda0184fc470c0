"""ElasticMQ, a server that speaks SQS."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from brokers import aws
from brokers.broker import Broker
from brokers.ports import free_port
from brokers.program import Program, install_directory

if TYPE_CHECKING:
    from pathlib import Path


class SqsBroker(Broker):
    """An SQS server with the limits of SQS, standard and FIFO queues.

    It keeps everything in memory: queues and messages are gone after `stop`, `kill` or `restart`,
    and not after `pause` and `resume`. Tests create the queues they need.
    """

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.port = free_port()

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
        return aws.client("sqs", url or self.url)

    def _program(self) -> Program:
        config = self.directory / "elasticmq.conf"
        config.write_text(
            f"""include classpath("application.conf")
node-address {{ protocol = http, host = "127.0.0.1", port = {self.port}, context-path = "" }}
rest-sqs {{ enabled = true, bind-hostname = "127.0.0.1", bind-port = {self.port}, \
sqs-limits = strict }}
rest-stats.enabled = false
aws {{ region = {aws.REGION}, accountId = 000000000000 }}
"""
        )
        classes = str(install_directory() / "elasticmq" / "*")
        java = ["java", "-Xmx256m", f"-Dconfig.file={config}", "-cp"]
        main = "org.elasticmq.server.Main"
        return Program(
            command=[*java, classes, main],
            image="softwaremill/elasticmq:1.6.14",
            container_command=[*java, "/opt/elasticmq/lib/*", main],
        )

    def _is_ready(self) -> bool:
        self.client().list_queues()
        return True
