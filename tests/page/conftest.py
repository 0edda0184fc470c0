"""The browser in which the page is tested."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from page.browser import browser

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Run one browser for a module's tests; no longer, because of its event loop."""
    with browser() as running:
        yield running
