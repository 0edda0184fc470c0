"""Flags beat the environment, which beats the file; and Python objects."""

import json
from pathlib import Path
from typing import Any

import pytest

from tardis_fast import ConfigError
from tardis_fast.options import (
    BUSES,
    DeliveryOptions,
    FeedOptions,
    KafkaOptions,
    LogOptions,
    ServerOptions,
    Settings,
    load_settings,
)
from tardis_fast.options.kafka import kafka_of_event_bus


def told(settings: Settings) -> Any:
    """Return what the core is told of the buses."""
    return {bus: options.core_values() for bus, options in settings.buses.items()}


def written(tmp_path: Path, text: str) -> Path:
    """Write a configuration file."""
    file = tmp_path / "bus.toml"
    file.write_text(text, "utf-8")
    return file


def test_a_flag_beats_the_environment_and_that_the_file(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        '[kafka]\ntopic = "file"\nbrokers = ["file:1"]\nacks = 1\n'
        '[kafka.topic_routing]\ntrade = "trades"\n[delivery]\nmax_block_ms = 5\n',
    )
    environment = {"TM_KAFKA_TOPIC": "environment", "TM_KAFKA_BROKERS": "environment:1"}
    settings = load_settings({"kafka": {"topic": "flag"}}, environment, file)
    assert told(settings) == {
        "kafka": {
            "topic": "flag",
            "brokers": "environment:1",
            "acks": "1",
            "topic_routing": [["trade", "trades"]],
        }
    }
    assert settings.delivery.max_block_ms == 5


def test_aliases_are_overridden_too(tmp_path: Path) -> None:
    file = written(tmp_path, '[kinesis]\nstream_name = "file"\n[sqs]\nstatic_attributes = "a:b"\n')
    environment = {"TM_SQS_STATIC_MESSAGE_ATTRIBUTES": "c:d"}
    settings = load_settings({"kinesis": {"stream": "flag"}}, environment, file)
    assert told(settings) == {"kinesis": {"stream": "flag"}, "sqs": {"static_attributes": "c:d"}}


def test_an_option_and_its_alias_together_are_refused() -> None:
    environment = {"TM_KINESIS_STREAM": "a", "TM_KINESIS_STREAM_NAME": "b"}
    with pytest.raises(ConfigError) as raised:
        load_settings({}, environment, None)
    assert str(raised.value) == (
        "--kinesis-stream: it contradicts --kinesis-stream-name: both name the same option; "
        "keep one of them"
    )


def test_a_bus_is_off_unless_one_of_its_options_is_given() -> None:
    environment = {
        "TM_KAFKA_TOPIC": "",
        "TM_OTHER": "x",
        "TM_KAFKA_UNKNOWN": "x",
        "TM_NATS_TLS": "1",
    }
    settings = load_settings({}, environment, None)
    assert told(settings) == {"nats": {"tls": True}}
    assert told(load_settings({}, {}, None)) == {}


def test_server_archive_and_log_have_their_sections(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        '[server]\nport = 9000\nmax_sessions = 5\n[archive]\nendpoint = "http://a/v1"\n'
        '[log]\nformat = "json"\n',
    )
    environment = {"TM_API_KEY": "hunter2", "TM_PORT": "9001", "TM_CLUSTER_MODE": "yes"}
    settings = load_settings({"server": {"host": "::1"}}, environment, file)
    assert settings.server == ServerOptions(
        port=9001, host="::1", cluster_mode=True, max_sessions=5
    )
    assert settings.archive == FeedOptions(endpoint="http://a/v1", api_key="hunter2")
    assert settings.log == LogOptions(format="json")
    assert "hunter2" not in repr(settings)


def test_what_no_section_of_the_program_needs_is_not_read(tmp_path: Path) -> None:
    file = written(
        tmp_path, '[server]\nport = "many"\n[kafka]\ntopic = "t"\n[archive]\noffline = "x"\n'
    )
    environment = {"TM_PORT": "tcp://10.0.0.1:80", "TM_LOG_FORMAT": "x"}
    settings = load_settings({}, environment, file, (*BUSES, DeliveryOptions))
    assert told(settings) == {"kafka": {"topic": "t"}}
    assert settings.server == ServerOptions()
    with pytest.raises(ConfigError) as raised:
        load_settings({}, environment, file, (ServerOptions,))
    assert str(raised.value) == "--port: `tcp://10.0.0.1:80` is not a whole number; give one"


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        (
            '[kafka]\ntopic_routin = "x"',
            "{file}: [kafka]: `topic_routin` is no option; did you mean `topic_routing`?",
        ),
        ("[kafak]\n", "{file}: `kafak` is no section; did you mean `kafka`?"),
        ("kafka = 1\n", "{file}: `kafka` is no table; write [kafka] above its options"),
        (
            '[kafka]\nsasl_password = hunter2"\n',
            "--config: `{file}` is not TOML at line 2, column 17; correct it",
        ),
        (
            '[kafka]\nmax_batch_size = "x"\n',
            "--kafka-max-batch-size: `x` is not a whole number; give one",
        ),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path: Path, text: str, refusal: str) -> None:
    file = written(tmp_path, text)
    with pytest.raises(ConfigError) as raised:
        load_settings({}, {}, file)
    assert str(raised.value) == refusal.format(file=file)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        load_settings({}, {}, tmp_path / "no.toml")
    assert str(raised.value) == (
        f"--config: `{tmp_path}/no.toml` cannot be read: No such file or directory; "
        "name a TOML file"
    )


def test_the_event_bus_of_tardis_machine_is_kafka() -> None:
    options = kafka_of_event_bus(
        {
            "provider": "kafka",
            "brokers": ["a:9092"],
            "topic": "bronze",
            "topicRouting": {"trade": "trades"},
            "clientId": "me",
            "ssl": True,
            "sasl": {"mechanism": "scram-sha-256", "username": "u", "password": "hunter2"},
            "includePayloads": ["trade"],
            "keyTemplate": "{{symbol}}",
            "staticHeaders": {"env": "test"},
            "metaHeadersPrefix": "meta-",
            "maxBatchSize": 10,
            "maxBatchDelayMs": 5,
            "compression": "gzip",
            "acks": -1,
            "idempotent": True,
        }
    )
    assert json.loads(options.to_core()) == {
        "brokers": ["a:9092"],
        "topic": "bronze",
        "topic_routing": [["trade", "trades"]],
        "client_id": "me",
        "ssl": True,
        "sasl_mechanism": "scram-sha-256",
        "sasl_username": "u",
        "sasl_password": "hunter2",
        "include_payloads": ["trade"],
        "key_template": "{{symbol}}",
        "static_headers": [["env", "test"]],
        "meta_headers_prefix": "meta-",
        "max_batch_size": 10,
        "max_batch_delay_ms": 5,
        "compression": "gzip",
        "acks": "all",
        "idempotent": True,
    }


@pytest.mark.parametrize(
    ("event_bus", "refusal"),
    [
        ({"provider": "nats"}, "event_bus.provider: `nats` is not known; use kafka"),
        (
            {"topicRoutin": "x"},
            "event_bus: `topicRoutin` is no option; did you mean `topicRouting`?",
        ),
        (
            {"sasl": {"user": "x"}},
            "event_bus.sasl: `user` is no option; did you mean `username`?",
        ),
        (
            {"sasl": "hunter2"},
            "event_bus.sasl: it is no mapping; give mechanism, username and password",
        ),
        (
            {"maxBatchSize": "x"},
            "--kafka-max-batch-size: `x` is not a whole number; give one",
        ),
    ],
)
def test_what_is_wrong_with_an_event_bus_is_said(event_bus: dict[str, Any], refusal: str) -> None:
    with pytest.raises(ConfigError) as raised:
        kafka_of_event_bus(event_bus)
    assert str(raised.value) == refusal


def test_objects_and_mappings_are_taken() -> None:
    settings = Settings.of_objects(
        {"kafka": KafkaOptions(topic="a"), "kinesis": {"stream_name": "s"}, "redis": None},
        delivery={"max_memory_mb": 1},
        server={"port": 0},
        archive=FeedOptions(offline=True),
    )
    assert settings.server == ServerOptions(port=0)
    assert settings.archive == FeedOptions(offline=True)
    assert told(settings) == {"kafka": {"topic": "a"}, "kinesis": {"stream": "s"}}
    assert settings.delivery == DeliveryOptions(max_memory_mb=1)
    assert settings.with_state("/s", spill=False).delivery == DeliveryOptions(
        max_memory_mb=1, state_dir="/s", spill=False
    )


def test_kafka_in_two_spellings_is_refused() -> None:
    with pytest.raises(ConfigError) as raised:
        Settings.of_objects({"kafka": {"topic": "a"}}, event_bus={"topic": "a"})
    assert str(raised.value) == (
        "event_bus: it contradicts kafka: both configure Kafka; keep one of them"
    )


def test_other_objects_are_refused() -> None:
    with pytest.raises(ConfigError) as raised:
        Settings.of_objects({"kafka": "a:9092"})
    assert str(raised.value) == "kafka: it is of type str; give KafkaOptions(...) or a mapping"
