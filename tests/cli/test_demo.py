"""The demo, run as a person runs it."""

import io
import json
import os
import re
import signal
import subprocess
import sysconfig
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pyarrow.dataset as ds
import pytest
from rich.console import Console

from tardis_fast.demo import Demo

COMMAND = Path(sysconfig.get_path("scripts")) / "tardis-fast"
EXPECTED = Path(__file__).parent / "expected"


def environment() -> dict[str, str]:
    """Return an environment without options of tardis-fast."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TM_")}
    return clean | {"COLUMNS": "80"}


def without_figures(text: str) -> str:
    """Return the text with # for every figure, and without the widths of columns."""
    text = re.sub(r"\d[\d,.]*\d|\d", "#", text)
    return re.sub(r"[━─]+", "─", re.sub(r" +", " ", text))


def test_help() -> None:
    done = subprocess.run(
        [COMMAND, "demo", "--help"],
        check=True,
        capture_output=True,
        text=True,
        env=environment(),
    )
    assert done.stdout == (EXPECTED / "demo-help.txt").read_text("utf-8")


def test_once_and_once_more(tmp_path: Path) -> None:
    for _ in range(2):
        done = subprocess.run(
            [COMMAND, "demo", "--once", "--dir", tmp_path],
            check=False,
            capture_output=True,
            text=True,
            env=environment(),
        )
        assert (done.returncode, done.stderr) == (0, ""), done.stdout
        assert without_figures(done.stdout) == (EXPECTED / "demo-once.txt").read_text("utf-8")
    trades = ds.dataset(tmp_path / "lake" / "payload_case=trade", partitioning="hive")
    rows = trades.to_table(columns=["exchange", "origin"]).to_pylist()
    assert {(row["exchange"], row["origin"]) for row in rows} == {
        (exchange, origin)
        for exchange in ("bitmex", "binance-futures", "deribit")
        for origin in ("ORIGIN_REPLAY", "ORIGIN_REALTIME")
    }


def test_it_runs_until_a_signal() -> None:
    with subprocess.Popen(
        [COMMAND, "demo", "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as process:
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        shown = "".join(iter(process.stdout.readline, "The lake, with Spark:\n"))
        with urlopen(f"{address}/") as page:  # noqa: S310 - HTTP
            assert b"tardis-fast" in page.read()
        assert _live_messages(address) > 0
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, "")
    assert f"curl -sG {address}/replay-normalized" in shown
    assert "The ledger balances" in out
    directory = re.findall(r'ds\.dataset\("(.*)/lake/payload_case=trade"', shown)[0]
    assert not Path(directory).exists()


def _live_messages(address: str) -> int:
    while True:
        with urlopen(f"{address}/status") as answer:  # noqa: S310 - HTTP
            sessions = json.load(answer)["sessions"]
        live = [one for one in sessions if one["endpoint"] == "/ws-stream-normalized"]
        if live and live[0]["messages"]:
            return int(live[0]["messages"])


def test_a_ledger_that_does_not_balance_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = io.StringIO()
    demo: Any = Demo(tmp_path, Console(file=out))
    demo._machine.close()  # noqa: SLF001 - nothing is started
    stats = demo._machine.publisher.stats()  # noqa: SLF001
    lost = {"lake": replace(stats["lake"], accepted=2, acknowledged=1)}
    monkeypatch.setattr(demo._machine.publisher, "stats", lambda: lost)  # noqa: SLF001
    assert demo._print_summary() is False  # noqa: SLF001
    assert "The ledger DOES NOT BALANCE." in out.getvalue()
