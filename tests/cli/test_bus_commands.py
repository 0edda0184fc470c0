"""`publish`, `decode` and `check`, run as a person runs them; the lake needs no broker."""

import json
import os
import signal
import subprocess
import sysconfig
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import pytest

import tardis_fast
from tardis_fast.options import BUSES

COMMAND = Path(sysconfig.get_path("scripts")) / "tardis-fast"
SAMPLES = (files(tardis_fast) / "samples" / "messages.jsonl").read_bytes()
EXPECTED = Path(__file__).parent / "expected"
EVENTS = len(tardis_fast.BronzeEncoder().encode_json(SAMPLES))


class Done(NamedTuple):
    """What a run came to."""

    code: int
    out: str
    err: str


def run(*arguments: object, given: bytes = b"", env: Mapping[str, str] | None = None) -> Done:
    """Run `tardis-fast`."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TM_")}
    done = subprocess.run(
        [COMMAND, *map(str, arguments)],
        check=False,
        input=given,
        capture_output=True,
        env=clean | {"COLUMNS": "80"} | dict(env or {}),
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def expected(name: str) -> str:
    """Return an expected text."""
    return (EXPECTED / f"{name}.txt").read_text("utf-8")


@pytest.mark.parametrize("command", ["publish", "decode", "check"])
def test_help(command: str) -> None:
    assert run(command, "--help") == (0, expected(f"{command}-help"), "")


@pytest.mark.parametrize(
    "section", [*(bus.section for bus in BUSES), "delivery", "bronze", "archive", "log"]
)
def test_help_of_a_bus(section: str) -> None:
    assert run("publish", "--help-bus", section) == (0, expected(f"help-bus-{section}"), "")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (
            ["publish", "-"],
            (
                "no bus is configured; give the options of at least one of kafka, kinesis, sqs, "
                "nats, redis, lake"
            ),
        ),
        (
            ["publish", "--kafka-max-batch-size", "many", "-"],
            "--kafka-max-batch-size: `many` is not a whole number; give one",
        ),
        (
            ["publish", "--lake-dir", "x", "--config", "no.toml", "-"],
            "--config: `no.toml` cannot be read: No such file or directory; name a TOML file",
        ),
        (
            ["publish", "--lake-dir", "x", "no-file.jsonl"],
            "no-file.jsonl: cannot be read: No such file or directory",
        ),
        (
            ["publish", "--lake-dir", "x", "--meta", "a", "-"],
            "--meta: `a` has no colon; write key:value,key:value",
        ),
        (
            ["publish", "--lake-dir", "x"],
            "nothing to publish; give FILE..., or --exchange, --from, --to and --data-types",
        ),
        (
            ["decode", "--reasons"],
            "--reasons: - holds none; give a dead-letter file",
        ),
        (
            ["check"],
            (
                "no bus is configured; give the options of at least one of kafka, kinesis, sqs, "
                "nats, redis, lake"
            ),
        ),
    ],
)
def test_bad_arguments_are_told_in_one_line(arguments: list[str], error: str) -> None:
    assert run(*arguments) == (2, "", f"error: {error}\n")


def test_a_flag_beats_the_environment_and_that_the_file(tmp_path: Path) -> None:
    file = tmp_path / "bus.toml"
    file.write_text('[lake]\ndir = "file"\nroll_mb = "file"\n', "utf-8")
    config = ("publish", "--config", file, "-")
    named = "--lake-roll-mb: `{}` is not a whole number; give one"
    assert named.format("file") in run(*config).err
    environment = {"TM_LAKE_ROLL_MB": "environment"}
    assert named.format("environment") in run(*config, env=environment).err
    assert named.format("flag") in run(*config, "--lake-roll-mb", "flag", env=environment).err


def test_options_of_another_command_do_not_disturb(tmp_path: Path) -> None:
    file = tmp_path / "all.toml"
    file.write_text('[server]\nport = "x"\n[archive]\nendpoint = "x"\n[log]\nformat = "x"\n')
    environment = {"TM_PORT": "tcp://10.0.0.1:80", "TM_MAX_SESSIONS": "x"}
    done = run("check", *lake(tmp_path), "--config", file, env=environment)
    assert done.code == 0, done.err


def lake(directory: Path) -> tuple[str, ...]:
    """Return the flags of a lake."""
    return (
        "--lake-dir",
        str(directory / "lake"),
        "--state-dir",
        str(directory / "state"),
    )


def test_messages_go_to_the_lake_and_come_back(tmp_path: Path) -> None:
    file = tmp_path / "messages.jsonl"
    file.write_bytes(SAMPLES)
    done = run("publish", *lake(tmp_path), file, "-", given=SAMPLES)
    assert done.code == 0, done.err
    assert f"│ lake │ {2 * EVENTS:>8} │ {2 * EVENTS:>12} │" in done.out
    decoded = run("decode", "--per-event", tmp_path / "lake")
    assert decoded.code == 0, decoded.err
    assert decoded.out.count("\n") == 2 * EVENTS
    whole = run("decode", tmp_path / "lake").out.splitlines()
    assert sorted(whole) == sorted((SAMPLES * 2).decode().splitlines())
    trades = run("decode", "--case", "trade", "--case", "book_ticker", tmp_path / "lake").out
    types = {json.loads(line)["type"] for line in trades.splitlines()}
    assert types == {"trade", "book_ticker"}
    again = run("publish", *lake(tmp_path / "second"), tmp_path / "lake")
    assert again.code == 0, again.err
    assert f"│ lake │ {2 * EVENTS:>8} │" in again.out


def test_what_could_not_be_sent_is_kept_shown_and_published_again(tmp_path: Path) -> None:
    nowhere = (
        "--kinesis-stream=bronze",
        "--kinesis-region=eu-west-1",
        "--kinesis-access-key-id=id",
        "--kinesis-secret-access-key=hunter2",
        "--kinesis-endpoint-url=http://127.0.0.1:9",
        f"--state-dir={tmp_path / 'state'}",
        "--drain-timeout=0",
    )
    done = run("publish", *nowhere, "-", given=SAMPLES)
    assert done.code == 1
    assert f"kinesis: {EVENTS} events wait in {tmp_path / 'state'}" in done.err
    assert "hunter2" not in done.out + done.err
    spill = tmp_path / "state" / "spill"
    assert run("decode", spill) == (0, SAMPLES.decode(), "")
    with_reasons = run("decode", "--reasons", "--per-event", spill).out.splitlines()
    assert len(with_reasons) == EVENTS
    assert {json.loads(line)["reason"] for line in with_reasons} == {""}
    again = run("publish", *lake(tmp_path / "second"), spill)
    assert again.code == 0, again.err
    assert f"│ lake │ {EVENTS:>8} │ {EVENTS:>12} │" in again.out


def test_dead_letters_are_shown_with_their_reason_and_published_again(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    state = f"--state-dir={tmp_path / 'state'}"
    done = run("publish", f"--lake-dir={tmp_path / 'file' / 'lake'}", state, "-", given=SAMPLES)
    assert done.code == 1
    (letters,) = (tmp_path / "state").rglob("lake.dead")
    shown = [json.loads(line) for line in run("decode", "--reasons", letters).out.splitlines()]
    assert all("Not a directory" in line["reason"] for line in shown)
    assert run("decode", letters) == (0, SAMPLES.decode(), "")
    again = run("publish", *lake(tmp_path / "second"), letters)
    assert again.code == 0, again.err
    assert f"│ lake │ {EVENTS:>8} │ {EVENTS:>12} │" in again.out


def test_a_bad_line_is_named_by_file_and_number(tmp_path: Path) -> None:
    file = tmp_path / "messages.jsonl"
    lines = SAMPLES * (5_000_000 // len(SAMPLES))
    file.write_bytes(lines + b"{\n")
    done = run("publish", *lake(tmp_path), file)
    assert done.code == 1
    number = lines.count(b"\n") + 1
    assert f"error: {file}: line {number}: " in done.err
    assert "│ lake │" in done.out


def delimited(events: list[bytes]) -> bytes:
    """Return events with their lengths before them, as Protobuf libraries write them."""
    written = bytearray()
    for event in events:
        length = len(event)
        while length >= 0x80:
            written.append(length & 0x7F | 0x80)
            length >>= 7
        written.append(length)
        written += event
    return bytes(written)


def test_protobuf_with_lengths_is_decoded() -> None:
    events = tardis_fast.BronzeEncoder().encode_json(SAMPLES).to_pylist()
    assert run("decode", given=delimited(events)) == (0, SAMPLES.decode(), "")
    assert run("decode", "-", given=b"") == (0, "", "")
    cut = run("decode", given=delimited(events)[:-1])
    assert cut.code == 1
    assert cut.err.startswith("error: -: its last ")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_reading_and_drains(tmp_path: Path, number: signal.Signals) -> None:
    with subprocess.Popen(
        [COMMAND, "publish", *lake(tmp_path), "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        assert running.stdin is not None
        assert running.stderr is not None
        running.stdin.write(SAMPLES)
        running.stdin.flush()
        # The line that says the bus is connected comes after the handlers are there.
        assert b"lake" in running.stderr.readline()
        running.send_signal(number)
        out, err = running.communicate()
    assert running.returncode == 128 + number
    assert f"{number.name}: reading no more".encode() in err
    assert "│ lake │".encode() in out


def test_check(tmp_path: Path) -> None:
    done = run("check", *lake(tmp_path))
    assert done.code == 0, done.err
    assert "│ lake │ ok" in done.out
    (tmp_path / "lake-file").write_bytes(b"")
    refused = run("check", "--lake-dir", tmp_path / "lake-file" / "x", "--state-dir", tmp_path)
    assert refused.code == 1
