"""The core refuses options it does not know: each bus is made with all that are declared."""

from pathlib import Path
from typing import Any

import pytest

from tardis_fast import Publisher
from tardis_fast.options import BUSES, BronzeOptions, DeliveryOptions, Settings

AWS = {
    "region": "eu-west-1",
    "include_payloads": ["trade"],
    "access_key_id": "id",
    "secret_access_key": "hunter2",
    "session_token": "hunter2",
    "endpoint_url": "http://127.0.0.1:9",
    "max_batch_size": 5,
    "max_batch_delay_ms": 5,
}
LOGINS: dict[str, list[dict[str, Any]]] = {
    "nats": [
        {"user": "me", "password": "hunter2"},
        {"token": "hunter2"},
        {"creds": "/me.creds"},
    ],
    "redis": [
        {"url": "redis://127.0.0.1:9"},
        {
            "host": "127.0.0.1",
            "port": 9,
            "username": "me",
            "password": "hunter2",
            "db": 1,
            "tls": False,
        },
    ],
}
"""Options that contradict one another, in groups that do not."""
ALL: dict[str, dict[str, Any]] = {
    "kafka": {
        "brokers": ["127.0.0.1:9"],
        "topic": "bronze",
        "topic_routing": {"trade": "trades"},
        "include_payloads": ["trade"],
        "client": "librdkafka",
        "client_id": "me",
        "ssl": True,
        "ssl_ca": "probe",
        "sasl_mechanism": "plain",
        "sasl_username": "me",
        "sasl_password": "hunter2",
        "key_template": "{{symbol}}",
        "static_headers": {"env": "test"},
        "meta_headers_prefix": "meta-",
        "compression": "lz4",
        "acks": "all",
        "idempotent": True,
        "max_batch_size": 5,
        "max_batch_delay_ms": 5,
        "config": {"socket.nagle.disable": "true"},
    },
    "kinesis": AWS
    | {
        "stream": "bronze",
        "stream_routing": {"trade": "trades"},
        "partition_key_template": "{{symbol}}",
        "static_headers": {"env": "test"},
        "ordering": "batch",
    },
    "sqs": AWS
    | {
        "queue_url": "http://127.0.0.1:9/1/bronze",
        "queue_routing": {"trade": "http://127.0.0.1:9/1/trades"},
        "static_attributes": {"env": "test"},
        "attribute_templates": {"venue": "{{exchange}}"},
    },
    "nats": {
        "servers": ["nats://127.0.0.1:9"],
        "subject": "bronze",
        "subject_routing": {"trade": "trades"},
        "subject_template": "bronze.{{symbol}}",
        "include_payloads": ["trade"],
        "tls": False,
        "static_headers": {"env": "test"},
        "stream": "BRONZE",
        "mode": "jetstream",
        "max_batch_size": 5,
        "max_batch_delay_ms": 5,
    },
    "redis": {
        "stream": "bronze",
        "stream_routing": {"trade": "trades"},
        "key_template": "{{symbol}}",
        "include_payloads": ["trade"],
        "static_headers": {"env": "test"},
        "max_len": 1000,
        "max_batch_size": 5,
        "max_batch_delay_ms": 5,
    },
    "lake": {"include_payloads": "trade", "roll_mb": 8, "roll_seconds": 5, "compression": "zstd"},
}


@pytest.mark.parametrize("model", BUSES, ids=lambda model: model.section)
def test_every_option_is_known(model: Any, tmp_path: Path) -> None:
    bus = model.section
    logins = LOGINS.get(bus, [{}])
    own = ALL[bus] | ({"dir": tmp_path / "lake"} if bus == "lake" else {})
    assert set(own).union(*logins) == {known.field for known in model.options()}
    for login in logins:
        given_bus: Any = {bus: own | login}
        with Publisher(**given_bus, state_dir=tmp_path, delivery={"drain_timeout": 0}) as made:
            assert made.stats()[bus].is_balanced


def test_every_option_of_delivery_is_known(tmp_path: Path) -> None:
    delivery: dict[str, Any] = {
        "max_block_ms": 1,
        "overflow": "drop",
        "max_memory_mb": 1,
        "state_dir": tmp_path,
        "spill": True,
        "spill_dir": tmp_path / "spill",
        "spill_max_mb": 1,
        "dead_letter_dir": tmp_path / "dead",
        "delivery_timeout_ms": 5,
        "retry_backoff_ms": 1,
        "retry_backoff_max_ms": 2,
        "drain_timeout": 0,
    }
    assert set(delivery) == {known.field for known in DeliveryOptions.options()}
    with Publisher(lake={"dir": tmp_path / "lake"}, delivery=delivery) as made:
        assert list(made.stats()) == ["lake"]


def test_every_option_of_encoding_is_known() -> None:
    bronze = BronzeOptions(source="me", origin="replay", meta="a:b, c:d", book_changes="message")
    assert len(list(bronze.given())) == len(BronzeOptions.options())
    assert bronze.encoder().next_seq == 1
    assert Settings().bronze.encoder().next_seq == 1
