"""`publish` of a range, straight from the sample market to the lake."""

import json
import os
import pty
import signal
import subprocess
import sysconfig
from pathlib import Path

import pytest

import tardis_fast
from tardis_fast import FeedOptions, Stream
from tardis_fast.sample_api import SampleApiThread

COMMAND = Path(sysconfig.get_path("scripts")) / "tardis-fast"
START, END = "2020-02-01", "2020-02-01T00:02"
RANGE = ("--from", START, "--to", END, "--data-types", "trade,book_change")
BITMEX = ("--exchange", "bitmex", "--symbols", "XBTUSD", *RANGE)


def environment() -> dict[str, str]:
    """Return an environment without options of tardis-fast."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TM_")}
    return clean | {"COLUMNS": "120", "TERM": "xterm"}


def run(*arguments: object) -> "subprocess.CompletedProcess[str]":
    """Run `tardis-fast`."""
    return subprocess.run(
        [COMMAND, *map(str, arguments)],
        check=False,
        capture_output=True,
        text=True,
        env=environment(),
    )


def lake(directory: Path) -> tuple[str, ...]:
    """Return the flags of a lake."""
    return ("--lake-dir", str(directory / "lake"), "--state-dir", str(directory / "state"))


def replayed(tmp_path: Path, *streams: Stream) -> list[str]:
    """Return the messages that a replay from Python gives."""
    with SampleApiThread() as api:
        feed = FeedOptions(endpoint=api.endpoint, cache_dir=tmp_path / "cache")
        return b"".join(tardis_fast.replay_normalized(*streams, feed=feed)).decode().splitlines()


def test_a_range_goes_to_the_lake(tmp_path: Path) -> None:
    done = run("publish", "--sample", *BITMEX, *lake(tmp_path))
    assert done.returncode == 0, done.stderr
    stream = Stream("bitmex", START, END, ["trade", "book_change"], ["XBTUSD"])
    decoded = run("decode", tmp_path / "lake").stdout.splitlines()
    assert sorted(decoded) == sorted(replayed(tmp_path, stream))
    assert len(decoded) > 100


def test_streams_are_merged_and_share_what_is_given_once(tmp_path: Path) -> None:
    exchanges = ("bitmex", "deribit")
    streams = [f'--stream={{"exchange":"{exchange}"}}' for exchange in exchanges]
    done = run("publish", "--sample", *streams, *RANGE, "--log-format=json", *lake(tmp_path))
    assert done.returncode == 0, done.stderr
    log = [json.loads(line) for line in done.stderr.splitlines()]
    assert {entry["bus"] for entry in log} == {"lake"}
    decoded = run("decode", tmp_path / "lake").stdout.splitlines()
    expected = [Stream(exchange, START, END, ["trade", "book_change"]) for exchange in exchanges]
    assert sorted(decoded) == sorted(replayed(tmp_path, *expected))


def test_events_say_that_they_are_replayed_unless_told_otherwise(tmp_path: Path) -> None:
    from tardis_fast.commands.event_files import parquet_chunks, sources  # noqa: PLC0415
    from tardis_fast.proto.lakehouse.bronze.v1 import normalized_event_pb2 as bronze  # noqa: PLC0415

    for flags, origin in (((), "ORIGIN_REPLAY"), (("--origin", "archive"), "ORIGIN_ARCHIVE")):
        place = tmp_path / origin
        done = run("publish", "--sample", *BITMEX, *flags, "--meta", "job:1", *lake(place))
        assert done.returncode == 0, done.stderr
        (events, *_) = parquet_chunks(sources((str(place / "lake"),))[0])
        event = bronze.NormalizedEvent.FromString(events[0].as_py())
        assert bronze.Origin.Name(event.origin) == origin
        assert event.meta["job"] == "1"
        assert event.meta["data_type"] in {"trade", "book_change"}


def test_a_terminal_sees_how_far_it_is(tmp_path: Path) -> None:
    parent, child = pty.openpty()
    with subprocess.Popen(
        [COMMAND, "publish", "--sample", *BITMEX, *lake(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=child,
        env=environment(),
    ) as running:
        os.close(child)
        shown = bytearray()
        try:
            while block := os.read(parent, 65_536):
                shown += block
        except OSError:
            pass  # that is how the end of a terminal is told
        os.close(parent)
    assert running.returncode == 0
    assert b"bitmex" in shown
    assert b"2/2 min" in shown
    assert b" messages, " in shown


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (
            ["file.jsonl", *BITMEX],
            "file.jsonl: it contradicts --exchange: publish files or a range; keep one of them",
        ),
        (["--exchange", "bitmex", "--to", END], "a range needs --from and --data-types too"),
        (["--sample"], "a range needs --exchange and --from and --to and --data-types too"),
        (["--exchange", "bitmax", *RANGE], "bitmax"),
        (["--exchange", "bitmex", *RANGE, "--data-types", "trades"], "trades"),
        (["--stream", "{", *RANGE], "--stream: `{` is no JSON: "),
        (["--stream", "[]", *RANGE], "--stream: it is no JSON object; "),
        (
            ["--stream", '{"exchang":"bitmex"}', *RANGE],
            "--stream: `exchang` is no option; did you mean `exchange`?",
        ),
        (["--stream", "{}", *BITMEX], "--stream: it contradicts --exchange: "),
        (["--stream", '{"exchange":7}', *RANGE], "exchange"),
    ],
)
def test_what_is_no_range_is_told_before_anything_begins(
    tmp_path: Path, arguments: list[str], error: str
) -> None:
    done = run("publish", *arguments, *lake(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert error in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "lake").exists()


def test_a_replay_that_fails_is_told_with_the_ledger(tmp_path: Path) -> None:
    cache = ("--offline", "--cache-dir", str(tmp_path / "cache"))
    done = run("publish", *BITMEX, *cache, *lake(tmp_path))
    assert done.returncode == 1
    assert any(line.startswith("error: ") for line in done.stderr.splitlines())
    assert "│ lake │" in done.stdout


def test_a_signal_ends_a_range_early_and_drains(tmp_path: Path) -> None:
    month = ("--exchange=bitmex", "--data-types=trade", "--from=2020-02-01", "--to=2020-03-01")
    with subprocess.Popen(
        [COMMAND, "publish", "--sample", *month, *lake(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as running:
        assert running.stderr is not None
        assert "connected" in running.stderr.readline()
        running.send_signal(signal.SIGTERM)
        out, err = running.communicate(timeout=120)
    assert running.returncode == 128 + signal.SIGTERM
    assert "SIGTERM: reading no more" in err
    assert "│ lake │" in out
