"""The options of Kafka, and the `eventBus` object of tardis-machine."""

from collections.abc import Mapping
from typing import Any, ClassVar

from tardis_fast._core import ConfigError
from tardis_fast.options.base import BusOptions, option, unknown_name
from tardis_fast.options.forms import (
    Names,
    Pairs,
    PathText,
    Properties,
    Secret,
    Switch,
    Text,
    Whole,
    shown,
)


class KafkaOptions(BusOptions):
    """Kafka: a record per event, with the headers payloadCase and dataType."""

    section: ClassVar[str] = "kafka"
    flag_prefix: ClassVar[str] = "kafka-"

    brokers: Names = option("Brokers to ask first.", metavar="HOST:PORT,...")
    topic: Text = option("Topic of all events that have no route of their own.")
    topic_routing: Pairs = option("Topics of payload cases.", metavar="CASE:TOPIC,...")
    include_payloads: Names = option("Publish only these payload cases.", metavar="CASE,CASE")
    client_id: Text = option("Name under which the brokers know this program.")
    ssl: Switch = option("Connect with TLS.")
    ssl_ca: PathText = option("Certificates to trust, a PEM file.")
    sasl_mechanism: Text = option("How to log in.", metavar="plain|scram-sha-256|scram-sha-512")
    sasl_username: Text = option("Who logs in.")
    sasl_password: Secret = option("The password; better in the environment or the file.")
    key_template: Text = option(
        "Key of a record.", default="{{exchange}}|{{symbol}}|{{payloadCase}}"
    )
    static_headers: Pairs = option("Headers of every record.", metavar="KEY:VALUE,...")
    meta_headers_prefix: Text = option("Send the event's meta as headers with this prefix.")
    compression: Text = option(
        "Codec of record batches.", default="lz4", metavar="none|gzip|snappy|lz4|zstd"
    )
    acks: Text = option("Replicas that must have a record.", default="all", metavar="all|1|0")
    idempotent: Switch = option("Let the broker drop what a retry doubles.", default="on")
    max_batch_size: Whole = option("Events in a request, at most.")
    max_batch_delay_ms: Whole = option("How long an event waits for others, at most.")
    config: Properties = option("Properties of librdkafka; may be repeated.")
    client: Text = option(
        "What publishes; direct, unless another option needs librdkafka.",
        metavar="direct|librdkafka",
    )


_EVENT_BUS_KEYS = {
    "brokers": "brokers",
    "topic": "topic",
    "topicRouting": "topic_routing",
    "clientId": "client_id",
    "ssl": "ssl",
    "includePayloads": "include_payloads",
    "keyTemplate": "key_template",
    "staticHeaders": "static_headers",
    "metaHeadersPrefix": "meta_headers_prefix",
    "maxBatchSize": "max_batch_size",
    "maxBatchDelayMs": "max_batch_delay_ms",
    "compression": "compression",
    "acks": "acks",
    "idempotent": "idempotent",
}
_SASL_KEYS = {
    "mechanism": "sasl_mechanism",
    "username": "sasl_username",
    "password": "sasl_password",
}


def kafka_of_event_bus(event_bus: Mapping[str, Any]) -> KafkaOptions:
    """Return the Kafka options that tardis-machine's `eventBus` object spells."""
    values: dict[str, Any] = {}
    for key, value in event_bus.items():
        if key == "provider":
            if value != "kafka":
                raise ConfigError(f"event_bus.provider: `{shown(value)}` is not known; use kafka")
        elif key == "sasl" and (value is None or isinstance(value, Mapping)):
            for name, entry in (value or {}).items():
                if name not in _SASL_KEYS:
                    raise ConfigError(unknown_name("event_bus.sasl", name, list(_SASL_KEYS)))
                values[_SASL_KEYS[name]] = entry
        elif key == "sasl":
            raise ConfigError(
                "event_bus.sasl: it is no mapping; give mechanism, username and password"
            )
        elif key in _EVENT_BUS_KEYS:
            values[_EVENT_BUS_KEYS[key]] = value
        else:
            known = [*_EVENT_BUS_KEYS, "sasl", "provider"]
            raise ConfigError(unknown_name("event_bus", key, known))
    if values.get("acks") in {-1, "-1"}:
        values["acks"] = "all"
    return KafkaOptions(**values)
