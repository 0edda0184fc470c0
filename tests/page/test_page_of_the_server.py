"""The page of a real server, with work on its hands; its looks are kept in the docs.

`pytest tests/page/test_page_of_the_server.py --update-screenshots` writes docs/images anew.
"""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote
from urllib.request import urlopen

import pytest
from playwright.sync_api import expect

from page.browser import PHONE, open_page, screenshot
from server.running import RunningMachine
from tardis_fast import TardisMachine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

IMAGES = Path(__file__).parents[2] / "docs" / "images"
PNG = b"\x89PNG\r\n\x1a\n"


def options(exchange: str, symbols: list[str], minutes: int) -> str:
    asked = {
        "exchange": exchange,
        "symbols": symbols,
        "from": "2020-02-01",
        "to": f"2020-02-01T{minutes // 60:02}:{minutes % 60:02}",
        "dataTypes": ["trade", "book_change", "book_snapshot_5_1s"],
    }
    return quote(json.dumps(asked))


@pytest.fixture(scope="module")
def busy_machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMachine]:
    """Run a server that publishes to a lake, one replay done and one whose client reads slowly."""
    directory = tmp_path_factory.mktemp("page")
    machine = TardisMachine(
        server={"sample": True},
        lake={"dir": str(directory / "lake")},
        state_dir=str(directory / "state"),
    )
    with RunningMachine(machine) as running:
        address = f"http://127.0.0.1:{running.port}/replay-normalized?options="
        with urlopen(address + options("deribit", ["BTC-PERPETUAL"], 1)) as done:  # noqa: S310 - ours
            assert len(done.read()) > 1_000
        is_over = threading.Event()
        reading = threading.Thread(target=_read_slowly, args=(address, is_over))
        reading.start()
        yield running
        is_over.set()
        reading.join()


def _read_slowly(address: str, is_over: threading.Event) -> None:
    with urlopen(address + options("bitmex", ["XBTUSD", "ETHUSD"], 600)) as slow:  # noqa: S310 - ours
        while not is_over.wait(0.02):
            slow.read(100_000)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_shows_what_the_server_does(
    chromium: Browser,
    busy_machine: RunningMachine,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    scheme: Literal["light", "dark"],
) -> None:
    url = f"http://127.0.0.1:{busy_machine.port}/"
    with open_page(chromium, url, scheme=scheme) as watched:
        page = watched.page
        expect(page.locator("#state")).to_contain_text("up")
        running = page.locator("[data-session]").filter(has_text="bitmex")
        expect(running).to_contain_text("XBTUSD")
        expect(page.locator("[data-session]").filter(has_text="deribit")).to_contain_text(
            "finished"
        )
        expect(page.locator('[data-bus="lake"]')).to_contain_text("accepted", ignore_case=True)
        for _ in range(12):
            page.evaluate("poll()")
            page.wait_for_timeout(150)
        kept = request.config.getoption("--update-screenshots")
        image = (IMAGES if kept else tmp_path) / f"page-{scheme}.png"
        screenshot(page, image)
        assert image.read_bytes().startswith(PNG)
        assert watched.requests_elsewhere(url) == []
        assert watched.complaints == []


def test_the_page_of_the_server_fits_a_phone(
    chromium: Browser, busy_machine: RunningMachine
) -> None:
    url = f"http://127.0.0.1:{busy_machine.port}/"
    with open_page(chromium, url, size=PHONE) as watched:
        expect(watched.page.locator('[data-bus="lake"]')).to_be_visible()
        overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert watched.page.evaluate(overflow) == 0


def test_the_docs_have_both_looks() -> None:
    for scheme in ("light", "dark"):
        assert (IMAGES / f"page-{scheme}.png").read_bytes().startswith(PNG)
