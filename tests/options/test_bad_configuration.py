"""Every bus refuses bad configuration at start, with flag, value and remedy."""

from pathlib import Path
from typing import Any

import pytest

from tardis_fast import ConfigError, Publisher

CASES = (
    "valid are trade, bookChange, bookSnapshot, quote, derivativeTicker, liquidation, "
    "optionSummary, bookTicker, groupedBookSnapshot, tradeBar, error, disconnect"
)
PLACEHOLDERS = (
    "valid are {{exchange}}, {{symbol}}, {{payloadCase}}, {{dataType}}, {{source}}, {{origin}}, "
    "{{meta.KEY}}"
)

GOOD: dict[str, dict[str, Any]] = {
    "kafka": {"brokers": "127.0.0.1:9", "topic": "bronze"},
    "kinesis": {
        "stream": "bronze",
        "region": "eu-west-1",
        "access_key_id": "id",
        "secret_access_key": "hunter2",
        "endpoint_url": "http://127.0.0.1:9",
    },
    "sqs": {
        "queue_url": "http://127.0.0.1:9/1/bronze",
        "region": "eu-west-1",
        "access_key_id": "id",
        "secret_access_key": "hunter2",
        "endpoint_url": "http://127.0.0.1:9",
    },
    "nats": {"servers": "nats://127.0.0.1:9", "subject": "bronze"},
    "redis": {"host": "127.0.0.1", "port": 9, "stream": "bronze"},
    "lake": {},
}
ROUTING = {
    "kafka": "topic_routing",
    "kinesis": "stream_routing",
    "sqs": "queue_routing",
    "nats": "subject_routing",
    "redis": "stream_routing",
}
TEMPLATE = {
    "kafka": "key_template",
    "kinesis": "partition_key_template",
    "nats": "subject_template",
    "redis": "key_template",
}
BASE = {
    "kafka": "topic",
    "kinesis": "stream",
    "sqs": "queue_url",
    "redis": "stream",
}


def flag(bus: str, key: str) -> str:
    """Return the flag of an option."""
    return f"--{bus}-{key}".replace("_", "-")


def refusal(bus: str, state_dir: Path, **changes: Any) -> str:
    """Return why a publisher is not made when `changes` are made to good options."""
    good = {"dir": str(state_dir / "lake")} if bus == "lake" else GOOD[bus]
    options: Any = {bus: good | changes}
    with pytest.raises(ConfigError) as raised:
        Publisher(**options, state_dir=state_dir)
    assert "hunter2" not in str(raised.value)
    return str(raised.value)


@pytest.mark.parametrize(("bus", "routing"), ROUTING.items())
def test_an_unknown_payload_case_in_the_routing(bus: str, routing: str, tmp_path: Path) -> None:
    assert refusal(bus, tmp_path, **{routing: {"trades": "x"}}) == (
        f"{flag(bus, routing)}: unknown payload case `trades`; {CASES}"
    )


@pytest.mark.parametrize("bus", GOOD)
def test_an_unknown_payload_case_in_the_allow_list(bus: str, tmp_path: Path) -> None:
    assert refusal(bus, tmp_path, include_payloads="trade,books") == (
        f"--{bus}-include-payloads: unknown payload case `books`; {CASES}"
    )


@pytest.mark.parametrize(("bus", "template"), TEMPLATE.items())
def test_an_unknown_placeholder(bus: str, template: str, tmp_path: Path) -> None:
    text = refusal(bus, tmp_path, **{template: "{{exchnage}}"})
    assert text.startswith(f"{flag(bus, template)}: unknown placeholder `{{{{exchnage}}}}`")
    assert text.endswith(PLACEHOLDERS)


def test_an_unknown_placeholder_in_an_attribute(tmp_path: Path) -> None:
    text = refusal("sqs", tmp_path, attribute_templates={"venue": "{{exchnage}}"})
    assert text.startswith("--sqs-attribute-templates: ")
    assert text.endswith(PLACEHOLDERS)


@pytest.mark.parametrize(("bus", "base"), BASE.items())
def test_an_empty_destination(bus: str, base: str, tmp_path: Path) -> None:
    assert refusal(bus, tmp_path, **{base: " "}) == (
        f"{flag(bus, base)}: it is empty; name the destination of all events that have no route "
        "of their own"
    )


@pytest.mark.parametrize(("bus", "routing"), ROUTING.items())
def test_an_empty_destination_in_the_routing(bus: str, routing: str, tmp_path: Path) -> None:
    assert refusal(bus, tmp_path, **{routing: "trade:"}) == (
        f"{flag(bus, routing)}: the destination of `trade` is empty; name one, or leave `trade` "
        "out so that it goes to the base destination"
    )


OTHER: list[tuple[str, dict[str, Any], str]] = [
    # Empty destinations where there is more than one way to name it.
    (
        "nats",
        {"subject": " "},
        "--nats-subject: it is missing; name a subject, or give --nats-subject-template",
    ),
    ("lake", {"dir": ""}, "--lake-dir: it is missing; name the directory of the table"),
    # A word that is none of the known ones.
    (
        "kinesis",
        {"ordering": "none"},
        "--kinesis-ordering: `none` is no ordering; give `key` or `batch`",
    ),
    # Contradictory options; of Kinesis below: a session token without keys.
    (
        "sqs",
        {"static_attributes": "venue:x", "attribute_templates": "venue:{{exchange}}"},
        (
            "--sqs-attribute-templates: it contradicts --sqs-static-attributes: both give the "
            "attribute `venue`; keep one of them"
        ),
    ),
    (
        "nats",
        {"stream": "S", "mode": "core"},
        (
            "--nats-stream: it contradicts --nats-mode core: core mode knows no streams; leave out "
            "one of them"
        ),
    ),
    (
        "nats",
        {"token": "hunter2", "user": "me", "password": "hunter2"},
        ("--nats-token: it contradicts --nats-user: both say who the client is; keep one of them"),
    ),
    (
        "lake",
        {"roll_mb": 1000},
        (
            "--lake-roll-mb: it contradicts --max-memory-mb: a file of 1000 MB does not fit into "
            "half of the memory; give 1 to 64, or raise the other"
        ),
    ),
    (
        "kafka",
        {"acks": "1", "idempotent": True},
        (
            "--kafka-idempotent: it contradicts --kafka-acks: without the acknowledgement of all "
            "replicas a retry may make a duplicate; set acks to all, or idempotent to false"
        ),
    ),
    (
        "redis",
        {"url": "redis://:hunter2@127.0.0.1"},
        (
            "--redis-url: it contradicts --redis-host: both say which server to use, and how; put "
            "it into the URL (redis://user:password@host:port/db, rediss:// for TLS), or leave the "
            "URL out"
        ),
    ),
    # Missing credentials.
    (
        "kinesis",
        {"secret_access_key": None},
        (
            "--kinesis-secret-access-key: it is missing; --kinesis-access-key-id is given without "
            "it; give both, or neither to use the default chain of AWS"
        ),
    ),
    (
        "kinesis",
        {"access_key_id": None, "secret_access_key": None, "session_token": "hunter2"},
        (
            "--kinesis-access-key-id: it is missing; --kinesis-session-token belongs to keys; give "
            "--kinesis-access-key-id and --kinesis-secret-access-key too"
        ),
    ),
    (
        "sqs",
        {"access_key_id": None},
        (
            "--sqs-access-key-id: it is missing; --sqs-secret-access-key is given without it; give "
            "both, or neither to use the default chain of AWS"
        ),
    ),
    ("nats", {"user": "me"}, "--nats-pass: it is missing; a user needs one"),
    (
        "kafka",
        {"sasl_mechanism": "plain", "sasl_username": "me"},
        (
            "--kafka-sasl-password: it is missing; credentials are incomplete: PLAIN needs the "
            "password"
        ),
    ),
    (
        "redis",
        {"username": "me"},
        "--redis-password: it is missing; a user needs one",
    ),
]
"""The other refusals, with their whole text."""


@pytest.mark.parametrize(("bus", "changes", "expected"), OTHER)
def test_contradictions_and_missing_credentials(
    bus: str, changes: dict[str, Any], expected: str, tmp_path: Path
) -> None:
    assert refusal(bus, tmp_path, **changes) == expected


def test_an_unknown_policy(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        Publisher(
            lake={"dir": tmp_path / "lake"}, delivery={"overflow": "forget"}, state_dir=tmp_path
        )
    assert str(raised.value) == "--overflow: `forget` is no policy; give block or drop"
