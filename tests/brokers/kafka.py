"""Apache Kafka: one node, its own controller, with every kind of listener that clients use."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from confluent_kafka.admin import AdminClient

from brokers.broker import Broker
from brokers.certificates import make_certificates
from brokers.ports import free_port
from brokers.program import Program, install_directory

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_CLUSTER_ID = "dGFyZGlzLWZhc3QtdGVzdA"
_LISTENERS = {
    "PLAINTEXT": "PLAINTEXT",
    "PROXIED": "PLAINTEXT",
    "SASL_PLAINTEXT": "SASL_PLAINTEXT",
    "SSL": "SSL",
    "SASL_SSL": "SASL_SSL",
    "CONTROLLER": "PLAINTEXT",
}


@dataclass(frozen=True)
class Login:
    """A user of the broker's SASL listeners."""

    user: str
    password: str


class KafkaBroker(Broker):
    """A Kafka broker that keeps its topics over restarts and creates none by itself.

    `settings` are added to its server.properties.
    """

    login = Login("market", "market-password")
    """Known to PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512 alike."""

    def __init__(self, directory: Path, settings: Mapping[str, str] | None = None) -> None:
        super().__init__(directory)
        self._settings = dict(settings or {})
        self._ports = {name: free_port() for name in _LISTENERS}
        self._proxy_port = free_port()
        self.certificates = make_certificates(directory / "certificates")

    @property
    def address(self) -> str:
        """Neither encrypted nor asking for a password."""
        return self._address("PLAINTEXT")

    @property
    def sasl_address(self) -> str:
        """Asks for a password by PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512."""
        return self._address("SASL_PLAINTEXT")

    @property
    def ssl_address(self) -> str:
        """Encrypted, with `certificates`."""
        return self._address("SSL")

    @property
    def sasl_ssl_address(self) -> str:
        """Encrypted and asking for a password."""
        return self._address("SASL_SSL")

    @property
    def proxied_address(self) -> str:
        """Where a proxy must listen so that clients reach the broker through it.

        A Kafka client leaves the address it was given for the one the broker names; on this
        listener, the broker names the proxy's.
        """
        return f"127.0.0.1:{self._proxy_port}"

    @property
    def proxied_upstream(self) -> str:
        """Where the proxy that listens on `proxied_address` must connect to."""
        return self._address("PROXIED")

    def _address(self, listener: str) -> str:
        return f"127.0.0.1:{self._ports[listener]}"

    def _program(self) -> Program:
        properties = self.directory / "server.properties"
        properties.write_text(
            "".join(f"{key}={text}\n" for key, text in self._properties().items())
        )
        classes = shlex.quote(str(install_directory() / "kafka" / "*"))
        return Program(
            command=self._once_formatted(
                f"java -Xmx256m -XX:TieredStopAtLevel=1 -cp {classes} kafka.tools.StorageTool",
                f"java -Xmx512m -cp {classes} kafka.Kafka",
                properties,
            ),
            image="apache/kafka:4.1.0",
            container_command=self._once_formatted(
                "/opt/kafka/bin/kafka-storage.sh",
                "/opt/kafka/bin/kafka-server-start.sh",
                properties,
            ),
        )

    def _once_formatted(self, storage: str, server: str, properties: Path) -> list[str]:
        formatted = shlex.quote(str(self.directory / "data" / "meta.properties"))
        config = shlex.quote(str(properties))
        scram = " ".join(
            f"--add-scram '{mechanism}=[name={self.login.user},password={self.login.password}]'"
            for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
        )
        format_ = f"{storage} format -t {_CLUSTER_ID} -c {config} {scram}"
        return ["sh", "-ec", f"[ -e {formatted} ] || {format_}; exec {server} {config}"]

    def _properties(self) -> dict[str, str]:
        advertised = {
            **{name: self._address(name) for name in _LISTENERS if name != "CONTROLLER"},
            "PROXIED": self.proxied_address,
        }
        module = "org.apache.kafka.common.security"
        user, password = self.login.user, self.login.password
        sasl = {
            "plain": f'{module}.plain.PlainLoginModule required user_{user}="{password}";',
            "scram-sha-256": f"{module}.scram.ScramLoginModule required;",
            "scram-sha-512": f"{module}.scram.ScramLoginModule required;",
        }
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{self._address('CONTROLLER')}",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "listeners": ",".join(f"{name}://{self._address(name)}" for name in _LISTENERS),
            "advertised.listeners": ",".join(f"{name}://{at}" for name, at in advertised.items()),
            "listener.security.protocol.map": ",".join(
                f"{name}:{protocol}" for name, protocol in _LISTENERS.items()
            ),
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
            **{
                f"listener.name.{listener}.{mechanism}.sasl.jaas.config": login
                for listener in ("sasl_plaintext", "sasl_ssl")
                for mechanism, login in sasl.items()
            },
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.certificates.keystore),
            "log.dirs": str(self.directory / "data"),
            "auto.create.topics.enable": "false",
            # A broker that was killed is let back in when its old session is over.
            "broker.session.timeout.ms": "4000",
            "broker.heartbeat.interval.ms": "1000",
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.num.partitions": "1",
            "transaction.state.log.min.isr": "1",
            # A consumer group need not wait for members that will not come.
            "group.initial.rebalance.delay.ms": "0",
            **self._settings,
        }

    def _is_ready(self) -> bool:
        client = AdminClient(
            # A broker that is not there yet is no news, and librdkafka would print it.
            {"bootstrap.servers": self.address, "log_level": 0, "reconnect.backoff.max.ms": 200},
        )
        topics = client.list_topics(timeout=2).topics.values()
        # After a restart the broker answers before its partitions have their leader back.
        return all(
            partition.leader == 1 for topic in topics for partition in topic.partitions.values()
        )
