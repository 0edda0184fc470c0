"""A real browser for the page, and pages in it that watch what they ask and complain about."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from playwright.sync_api import sync_playwright

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, ConsoleMessage, Error, Page, Request

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
DESKTOP = (1280, 800)
PHONE = (360, 740)


@contextmanager
def browser() -> Iterator[Browser]:
    """Run Chromium. Until the end, this thread has a running event loop: no `asyncio.run` in it."""
    program = shutil.which("chromium")
    if program is None:
        raise FileNotFoundError("chromium is not on PATH; install it: apt-get install chromium")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=FLAGS)
        try:
            yield chromium
        finally:
            chromium.close()


@dataclass
class WatchedPage:
    """A page, what it asked for, and what it complained about."""

    page: Page
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def watch(self) -> None:
        """Begin."""
        self.page.on("request", self._note_request)
        self.page.on("console", self._note_console)
        self.page.on("pageerror", self._note_error)

    def requests_elsewhere(self, url: str) -> list[str]:
        """Return the requests that went to another server than that of `url`."""
        return [asked for asked in self.requests if not asked.startswith((url, "data:"))]

    def _note_request(self, request: Request) -> None:
        self.requests.append(request.url)

    def _note_console(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.complaints.append(message.text)

    def _note_error(self, error: Error) -> None:
        self.complaints.append(error.message)


@contextmanager
def open_page(
    chromium: Browser,
    url: str,
    *,
    size: tuple[int, int] = DESKTOP,
    scheme: Literal["light", "dark"] = "light",
) -> Iterator[WatchedPage]:
    """Open `url` in a window with storage of its own."""
    width, height = size
    context = chromium.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce"
    )
    try:
        watched = WatchedPage(context.new_page())
        watched.watch()
        watched.page.set_default_timeout(15_000)
        watched.page.goto(url)
        yield watched
    finally:
        context.close()


def screenshot(page: Page, path: Path) -> None:
    """Keep the page as it looks from top to bottom."""
    path.parent.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=path, full_page=True, animations="disabled", caret="hide")
