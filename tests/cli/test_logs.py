"""The log as text and as JSON."""

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from tardis_fast.logs import JsonFormatter, TextFormatter, configure_log
from tardis_fast.options import LogOptions

BUS = {"bus": "kafka", "event_kind": "retry", "fields": {"events": "7", "reason": "not there"}}
TIME = "2023-11-14T22:13:20.500Z"


def record(message: str, **extra: Any) -> logging.LogRecord:
    """Return a record as a logger makes it."""
    name = "tardis_fast.bus.kafka"
    made = logging.getLogger(name).makeRecord(
        name, logging.WARNING, "file", 1, "%s", (message,), None, extra=extra
    )
    made.created = 1_700_000_000.5
    return made


def test_text_has_the_fields_behind_the_message() -> None:
    assert TextFormatter().format(record("sent again", **BUS)) == (
        f'{TIME} warning bus.kafka: sent again events=7 reason="not there"'
    )


def test_json_has_the_fields_by_name() -> None:
    line = JsonFormatter().format(record("sent again", **BUS, session=3))
    assert list(json.loads(line).items()) == [
        ("time", TIME),
        ("level", "warning"),
        ("logger", "tardis_fast.bus.kafka"),
        ("message", "sent again"),
        *BUS.items(),
        ("session", 3),
    ]


@pytest.mark.parametrize("formatter", [TextFormatter(), JsonFormatter()])
def test_what_a_client_sends_makes_no_line_and_no_password_is_shown(
    formatter: logging.Formatter,
) -> None:
    line = formatter.format(
        record("GET /\n2023 error: forged\x1b[2J", url="redis://me:hunter2@h/0", odd={1: object()})
    )
    assert "\n" not in line
    assert "\x1b" not in line
    assert "hunter2" not in line
    assert "redis://***@h/0" in line


def test_a_traceback_comes_along() -> None:
    made = record("failed")
    error = OSError("redis://me:hunter2@h/0")
    made.exc_info = (OSError, error, None)
    text = TextFormatter().format(made)
    assert text.startswith(f"{TIME} warning bus.kafka: failed\n")
    assert text.endswith("OSError: redis://***@h/0")
    entry = json.loads(JsonFormatter().format(made))
    assert entry["traceback"].endswith("OSError: redis://***@h/0")


@pytest.fixture
def kept_loggers() -> Iterator[None]:
    """Put the loggers back as they were."""
    root, package = logging.getLogger(), logging.getLogger("tardis_fast")
    before = root.handlers, root.level, package.level
    yield
    root.handlers, root.level, package.level = before


@pytest.mark.usefixtures("kept_loggers")
def test_the_program_logs_its_own_and_what_is_wrong_elsewhere() -> None:
    stream = io.StringIO()
    configure_log(LogOptions(format="json"), stream=stream)
    configure_log(LogOptions(format="json"), debug=True, stream=stream)
    logging.getLogger("aiohttp.access").info("not this")
    logging.getLogger("aiohttp.server").error("this")
    logging.getLogger("tardis_fast.server").debug("and this")
    messages = [json.loads(line)["message"] for line in stream.getvalue().splitlines()]
    assert messages == ["this", "and this"]
