"""The log of a program: as text for people, or as a JSON object a line for machines.

A record's extra fields come along: `logger.info("...", extra={"session": 7})`. Those of buses carry
`bus`, `event_kind` and `fields`; see `bus_log`. Passwords in addresses are taken out of everything.
"""

import json
import logging
import re
import sys
from datetime import datetime, timezone
from typing import IO, Any

from tardis_fast.options import LogOptions
from tardis_fast.options.forms import shown

PACKAGE = "tardis_fast"
_STANDARD = {*logging.makeLogRecord({}).__dict__, "message", "asctime", "taskName"}
"""What every record has; the rest are extra fields."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_PLAIN = re.compile(r"[^\s\"=]+")


class TextFormatter(logging.Formatter):
    """Time, level, logger and message in a line, then the extra fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; a traceback stands below it."""
        extra = _extra(record)
        nested = extra.pop("fields", None)
        fields = extra | nested if isinstance(nested, dict) else extra
        # Both are said already: by the logger's name and by the message.
        pairs = [
            f" {name}={_text(value)}"
            for name, value in fields.items()
            if name not in {"bus", "event_kind"}
        ]
        name = record.name.removeprefix(f"{PACKAGE}.")
        line = f"{_time(record)} {record.levelname.lower()} {name}: {record.getMessage()}"
        lines = [_one_line(line + "".join(pairs)), *_traceback(self, record)]
        return shown("\n".join(lines))


class JsonFormatter(logging.Formatter):
    """A JSON object with `time`, `level`, `logger`, `message` and the extra fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the object, without a line break."""
        entry: dict[str, Any] = _extra(record) | {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if trace := _traceback(self, record):
            entry["traceback"] = "\n".join(trace)
        first = ("time", "level", "logger", "message")
        ordered = {name: entry[name] for name in first} | entry
        return json.dumps(_safe(ordered), ensure_ascii=False, default=str)


def formatter_of(options: LogOptions) -> logging.Formatter:
    """Return the formatter that the options ask for."""
    return JsonFormatter() if options.format == "json" else TextFormatter()


def configure_log(
    options: LogOptions, *, debug: bool = False, stream: IO[str] | None = None
) -> None:
    """Write the log of the whole program to `stream`, which is standard error if not given."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(formatter_of(options))
    root = logging.getLogger()
    root.handlers = [handler]
    # Of other libraries only what is wrong; they are talkative.
    root.setLevel(logging.WARNING)
    logging.getLogger(PACKAGE).setLevel(logging.DEBUG if debug else logging.INFO)


def _extra(record: logging.LogRecord) -> dict[str, Any]:
    return {name: value for name, value in record.__dict__.items() if name not in _STANDARD}


def _time(record: logging.LogRecord) -> str:
    at = datetime.fromtimestamp(record.created, timezone.utc)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _traceback(formatter: logging.Formatter, record: logging.LogRecord) -> list[str]:
    if record.exc_info and record.exc_info[0] is not None:
        return formatter.formatException(record.exc_info).splitlines()
    return []


def _text(value: object) -> str:
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)


def _one_line(text: str) -> str:
    """Return `text` without control characters: what clients send must not forge lines."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def _safe(value: Any) -> Any:  # noqa: ANN401 - whatever a record carries
    """Return `value` with no password in an address and with texts for keys."""
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, dict):
        return {str(name): _safe(entry) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_safe(entry) for entry in value]
    return value
