"""One declaration per option: its names, its reading, its showing."""

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from tardis_fast import ConfigError
from tardis_fast.commands.option_flags import EXAMPLES
from tardis_fast.options import (
    BUSES,
    DeliveryOptions,
    KafkaOptions,
    KinesisOptions,
    LogOptions,
    NatsOptions,
    RedisOptions,
    ServerOptions,
    SqsOptions,
)
from tardis_fast.options.settings import SECTIONS

CONTRACT = {
    "kafka": "brokers topic topic-routing include-payloads client-id ssl ssl-ca sasl-mechanism "
    "sasl-username sasl-password key-template static-headers meta-headers-prefix compression acks "
    "idempotent max-batch-size max-batch-delay-ms config client",
    "kinesis": "stream region stream-routing include-payloads access-key-id secret-access-key "
    "session-token endpoint-url partition-key-template static-headers ordering max-batch-size "
    "max-batch-delay-ms",
    "sqs": "queue-url region queue-routing include-payloads access-key-id secret-access-key "
    "session-token endpoint-url static-attributes attribute-templates max-batch-size "
    "max-batch-delay-ms",
    "nats": "servers subject subject-routing subject-template include-payloads user pass token "
    "creds tls static-headers stream mode max-batch-size max-batch-delay-ms",
    "redis": "url host port password username db tls stream stream-routing key-template "
    "include-payloads static-headers max-len max-batch-size max-batch-delay-ms",
    "lake": "dir include-payloads roll-mb roll-seconds compression",
}


def test_the_flags_are_those_of_the_contract() -> None:
    flags = {
        model.section: [known.flag.removeprefix(f"--{model.section}-") for known in model.options()]
        for model in BUSES
    }
    assert flags == {bus: names.split() for bus, names in CONTRACT.items()}
    assert set(EXAMPLES) == set(CONTRACT)


def test_every_option_is_described_and_no_flag_means_two_things() -> None:
    options = [known for model in SECTIONS for known in model.options()]
    assert all(known.description.endswith(".") for known in options)
    flags = [flag for known in options for flag in known.flags]
    assert len(set(flags)) == len(flags)


def test_names_are_derived() -> None:
    routing = next(known for known in KafkaOptions.options() if known.key == "topic_routing")
    assert routing.flags == ("--kafka-topic-routing",)
    assert routing.environment_name_of(routing.key) == "TM_KAFKA_TOPIC_ROUTING"
    stream = KinesisOptions.options()[0]
    assert stream.flags == ("--kinesis-stream", "--kinesis-stream-name")
    block = DeliveryOptions.options()[0]
    assert (block.flag, block.environment_name_of(block.key)) == (
        "--max-block-ms",
        "TM_MAX_BLOCK_MS",
    )


@pytest.mark.parametrize(
    "routing", ["trade:a,quote:b", {"trade": "a", "quote": "b"}, [("trade", "a"), ("quote", "b")]]
)
def test_pairs_are_taken_as_text_mapping_or_list(routing: Any) -> None:
    told = json.loads(KafkaOptions(topic_routing=routing).to_core())["topic_routing"]
    assert told in ("trade:a,quote:b", [["trade", "a"], ["quote", "b"]])


def test_the_core_is_told_what_is_given_and_nothing_else() -> None:
    options = KafkaOptions(
        brokers=["a:1", "b:2"],
        ssl=True,
        ssl_ca=Path("/ca.pem"),
        acks="1",
        max_batch_size=7,
        sasl_password="hunter2",
        config={"linger.ms": "5"},
    )
    assert json.loads(options.to_core()) == {
        "brokers": ["a:1", "b:2"],
        "ssl": True,
        "ssl_ca": "/ca.pem",
        "acks": "1",
        "max_batch_size": 7,
        "sasl_password": "hunter2",
        "config": [["linger.ms", "5"]],
    }
    assert json.loads(NatsOptions(password="p").to_core()) == {"pass": "p"}
    assert KafkaOptions().to_core() == "{}"


def test_delivery_finds_its_directories(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert DeliveryOptions().core_values() == {
        "spill_dir": f"{tmp_path}/tardis-fast/spill",
        "dead_letter_dir": f"{tmp_path}/tardis-fast/dead-letters",
    }
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", "/home/me")
    assert DeliveryOptions(spill=False).core_values() == {
        "dead_letter_dir": "/home/me/.local/state/tardis-fast/dead-letters"
    }
    own = DeliveryOptions(state_dir="/s", spill_dir="/a", drain_timeout=2.5)
    assert own.core_values() == {"spill_dir": "/a", "dead_letter_dir": "/s/dead-letters"}
    assert (own.drain_seconds, DeliveryOptions().drain_seconds) == (2.5, 30)


def test_no_spill_contradicts_its_directory() -> None:
    with pytest.raises(ConfigError, match=r"^--no-spill: it contradicts --spill-dir: "):
        DeliveryOptions(spill=False, spill_dir="/a").core_values()


@pytest.mark.parametrize(
    ("model", "values", "refusal"),
    [
        (
            KafkaOptions,
            {"max_batch_size": "many"},
            "--kafka-max-batch-size: `many` is not a whole number; give one",
        ),
        (
            KafkaOptions,
            {"max_batch_size": 1.5},
            "--kafka-max-batch-size: `1.5` is not a whole number; give one",
        ),
        (
            SqsOptions,
            {"max_batch_delay_ms": -1},
            "--sqs-max-batch-delay-ms: -1 is out of range; give 0 or more",
        ),
        (RedisOptions, {"port": 65536}, "--redis-port: 65536 is out of range; give 1 to 65535"),
        (
            KafkaOptions,
            {"ssl": "maybe"},
            "--kafka-ssl: `maybe` is neither true nor false; write one of the two",
        ),
        (KafkaOptions, {"topic": ["a"]}, "--kafka-topic: `['a']` is not text; give text"),
        (
            KafkaOptions,
            {"topic_routing": {"trade": None}},
            (
                "--kafka-topic-routing: `{'trade': None}` has no pairs of texts; write a:b,c:d or "
                "give a mapping of texts"
            ),
        ),
        (
            KafkaOptions,
            {"include_payloads": 3},
            "--kafka-include-payloads: `3` is no list of texts; write a,b or give a list",
        ),
        (
            KafkaOptions,
            {"topic_routin": "x"},
            "kafka: `topic_routin` is no option; did you mean `topic_routing`?",
        ),
        (
            DeliveryOptions,
            {"drain_timeout": "soon"},
            "--drain-timeout: `soon` is not a number; give seconds",
        ),
    ],
)
def test_a_bad_value_is_named_with_its_remedy(
    model: Any, values: dict[str, Any], refusal: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        model(**values)
    assert str(raised.value) == refusal


SECRETS = [
    (KafkaOptions, "sasl_password"),
    (KafkaOptions, "config"),
    (KinesisOptions, "access_key_id"),
    (KinesisOptions, "secret_access_key"),
    (KinesisOptions, "session_token"),
    (SqsOptions, "secret_access_key"),
    (SqsOptions, "session_token"),
    (NatsOptions, "password"),
    (NatsOptions, "token"),
    (RedisOptions, "url"),
    (RedisOptions, "password"),
]


@pytest.mark.parametrize(("model", "field"), SECRETS)
def test_secrets_are_shown_as_stars(model: Any, field: str) -> None:
    options = model(**{field: "sasl.password=hunter2"})
    for text in (repr(options), str(options), f"{options}", repr([options])):
        assert "hunter2" not in text
        assert f"{field}=***" in text
    assert "hunter2" not in options.model_dump_json()
    assert pickle.loads(pickle.dumps(options)) == options  # noqa: S301 - its own bytes


@pytest.mark.parametrize(("model", "field"), SECRETS)
def test_secrets_are_in_no_error(model: Any, field: str) -> None:
    with pytest.raises(ConfigError) as raised:
        model(**{field: {"hunter2": object()}})
    error: BaseException | None = raised.value
    while error is not None:
        assert "hunter2" not in str(error)
        assert "hunter2" not in repr(error)
        error = error.__cause__ or error.__context__


def test_a_password_in_a_server_url_is_not_shown() -> None:
    options = NatsOptions(servers="nats://me:hunter2@host:4222,nats://other")
    assert "hunter2" not in repr(options)
    assert "nats://***@host:4222,nats://other" in repr(options)
    assert "hunter2" not in repr(NatsOptions(servers=["nats://me:hunter2@host:4222"]))
    assert "hunter2" in options.to_core()


def test_the_server_has_a_value_for_everything_it_needs() -> None:
    server = ServerOptions()
    assert (server.port, server.host, server.max_sessions) == (8000, "127.0.0.1", 1000)
    assert (server.max_options_kb, server.slow_client_timeout) == (64, 135.0)
    switches = [known.field for known in ServerOptions.options() if known.form.is_switch]
    assert [field for field in switches if getattr(server, field)] == ["request_log"]
    assert (server.token, ServerOptions(auth_token="hunter2").token) == (None, "hunter2")
    assert "hunter2" not in repr(ServerOptions(auth_token="hunter2"))
    assert ServerOptions(port=None, host=None) == server  # type: ignore[arg-type]
    for known in (*ServerOptions.options(), *LogOptions.options()):
        assert known.default or known.form.is_secret


@pytest.mark.parametrize(
    ("values", "refusal"),
    [
        ({"port": 65_536}, "--port: 65536 is out of range; give 1 to 65535"),
        ({"port": [0]}, "--port: `[0]` is not a whole number; give one"),
        ({"max_sessions": 0}, "--max-sessions: 0 is out of range; give 1 or more"),
        ({"auth_token": " "}, "--auth-token: it is empty; give a token, or leave the option out"),
        ({"sample": "x"}, "--sample: `x` is neither true nor false; write one of the two"),
        ({"prot": 1}, "server: `prot` is no option; did you mean `port`?"),
        ({"prot": None}, "server: `prot` is no option; did you mean `port`?"),
    ],
)
def test_what_the_server_cannot_use_is_refused(values: dict[str, Any], refusal: str) -> None:
    with pytest.raises(ConfigError) as raised:
        ServerOptions(**values)
    assert str(raised.value) == refusal


def test_the_format_of_the_log_is_one_of_two() -> None:
    with pytest.raises(ConfigError) as raised:
        LogOptions.from_keys({"format": "xml"})
    assert str(raised.value) == "--log-format: `xml` is not known; use text or json"
