"""The page in a real browser, against a server that says what the test wants."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal

import pytest
from playwright.sync_api import expect

from page.browser import DESKTOP, PHONE, open_page, screenshot
from page.contrast import CONTRAST_AA, weakest_contrast
from page.made_up_server import MadeUpServer
from page.made_up_status import bus, busy, live, progress, session, status
from tardis_fast.bus_stats import Latency

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

NOTHING = "\N{EN DASH}"
"""What stands where there is no figure."""


@contextmanager
def shown(
    chromium: Browser,
    answers: Callable[[int], dict[str, Any]],
    *,
    size: tuple[int, int] = DESKTOP,
    scheme: Literal["light", "dark"] = "light",
) -> Iterator[tuple[Page, MadeUpServer]]:
    """Show what a server says; at the end, nothing was asked elsewhere nor complained about."""
    with (
        MadeUpServer(answers) as server,
        open_page(chromium, server.url, size=size, scheme=scheme) as watched,
    ):
        expect(watched.page.locator("#state")).to_contain_text("up")
        yield watched.page, server
        assert watched.requests_elsewhere(server.url) == []
        assert watched.complaints == []


def poll(page: Page, times: int) -> None:
    """Have the page ask now instead of once a second."""
    for _ in range(times):
        page.evaluate("poll()")


def session_text(page: Page, name: str) -> str:
    return page.locator(f'[data-session="{name}"]').inner_text()


def bus_figures(page: Page, name: str) -> dict[str, str]:
    terms = page.locator(f'[data-bus="{name}"] dl > div')
    pairs = [terms.nth(at).locator("dt, dd").all_inner_texts() for at in range(terms.count())]
    return {label: " ".join(text.split()) for label, text in pairs}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_busy_server(chromium: Browser, tmp_path: Path, scheme: Literal["light", "dark"]) -> None:
    with shown(chromium, busy, scheme=scheme) as (page, _):
        poll(page, 25)
        screenshot(page, tmp_path / f"page-{scheme}.png")
        ratio, text = weakest_contrast(page)
        assert ratio >= CONTRAST_AA, text
        brightness = page.evaluate("getComputedStyle(document.body).backgroundColor.slice(4)")
        assert (int(brightness.split(",")[0]) > 128) == (scheme == "light")


def test_nothing_is_wider_than_the_window(chromium: Browser, tmp_path: Path) -> None:
    def answers(answer: int) -> dict[str, Any]:
        said = busy(answer)
        said["sessions"][3]["error"] = "x" * 400
        said["sessions"][0]["symbols"] = ["Y" * 120]
        said["buses"][1]["last_error"] = "z" * 400
        said["buses"][0]["accepted"] = 9_876_543_210
        said["buses"][1]["accepted"] = 123_456_789_012
        said["totals"]["messages"] = 9_876_543_210
        return said

    with shown(chromium, answers, size=PHONE) as (page, _):
        poll(page, 3)
        screenshot(page, tmp_path / "page-phone.png")
        cell = page.locator("#sessions td").first
        assert cell.evaluate("cell => getComputedStyle(cell).display") == "grid", "cards"
        for width in (PHONE[0], 540, 770, 900, DESKTOP[0]):
            page.set_viewport_size({"width": width, "height": PHONE[1]})
            wide, room = page.evaluate(
                "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
            )
            assert wide <= room
            assert room == width
            crowded = page.locator(".figures dd").evaluate_all(
                "all => all.filter(dd => dd.scrollWidth > dd.clientWidth).map(dd => dd.innerText)"
            )
            assert crowded == [], f"{width} pixels"


def test_the_server_and_its_rates(chromium: Browser) -> None:
    with shown(chromium, status) as (page, _):
        poll(page, 4)
        expect(page.locator("#message-rate")).to_have_text("6,000")
        expect(page.locator("#byte-rate")).to_have_text("1.25")
        expect(page.locator("#cpu")).to_have_text("42 %")
        expect(page.locator("#memory")).to_have_text("84 MB")
        expect(page.locator("#version")).to_have_text("0.1.0")
        expect(page.locator("#uptime")).to_contain_text("1 min 4")
        expect(page.locator("#running-max")).to_have_text("of 1,000")
        assert page.locator("#server-spark svg").get_attribute("aria-label") == (
            "Messages per second, last two minutes, peak 6,000 per second"
        )
        expect(page.get_by_text("No bus configured")).to_be_visible()
        expect(page.get_by_text("No session yet")).to_be_visible()


def test_a_restarted_server_has_no_negative_rates(chromium: Browser) -> None:
    with shown(chromium, status) as (page, server):
        poll(page, 3)
        server.status = lambda answer: status(answer - 90)
        poll(page, 4)
        expect(page.locator("#message-rate")).to_have_text("6,000")


def test_sessions_with_progress_and_rates(chromium: Browser) -> None:
    def answers(answer: int) -> dict[str, Any]:
        replay = session(
            "r-1",
            messages=2_000 * answer,
            bytes=500_000 * answer,
            progress=progress(15, 60),
        )
        stream = session(
            "s-1",
            endpoint="/ws-stream-normalized",
            transport="ws",
            symbols=[],
            live=live(connected=1, reconnects=4),
        )
        ended = session(
            "r-0", state="finished", endedAt=replay["startedAt"], progress=progress(60, 60)
        )
        said = status(answer, sessions=[ended, replay, stream])
        said["totals"]["sessionsRunning"] = 2
        return said

    with shown(chromium, answers) as (page, _):
        poll(page, 4)
        replay, stream = session_text(page, "r-1"), session_text(page, "s-1")
        for text in ("25 % · 15 of 60 min", "2,000/s", "0.50 MB/s", "bitmex", "XBTUSD", "00:15:00"):
            assert text in replay
        bar = page.locator('[data-session="r-1"] [role=progressbar]')
        assert bar.get_attribute("aria-valuenow") == "25"
        for text in ("live", "1 of 2 connections", "4 reconnects", "WebSocket", "all symbols"):
            assert text in stream
        names = page.locator("[data-session]")
        order = [names.nth(at).get_attribute("data-session") for at in range(names.count())]
        assert order == ["r-1", "s-1", "r-0"], "those that run come first"


def test_a_session_that_ends_moves_down_and_one_that_is_forgotten_goes(chromium: Browser) -> None:
    running = status(1, sessions=[session("r-1"), session("r-2")])
    with shown(chromium, lambda _: running) as (page, server):
        ended = session("r-1", state="failed", endedAt=running["now"], error="the disk is full")
        server.status = lambda _: status(2, sessions=[ended, session("r-2")])
        poll(page, 1)
        expect(page.locator("[data-session]").last).to_contain_text("the disk is full")
        server.status = lambda _: status(3, sessions=[session("r-2")])
        poll(page, 1)
        expect(page.locator("[data-session]")).to_have_count(1)


def test_the_ledger_of_a_bus(chromium: Browser) -> None:
    def answers(answer: int) -> dict[str, Any]:
        histogram = Latency((0.001, 0.01, 0.1), (0, 90 * answer, 10 * answer, 0), 1.0)
        kafka = bus(
            "kafka",
            accepted=10_000 * answer + 345,
            acknowledged=9_000 * answer,
            waiting=1_000 * answer + 300,
            dead_lettered=40,
            dropped=5,
            retried=77,
            in_memory=150,
            in_memory_bytes=64_000_000,
            in_flight=50,
            in_flight_bytes=9_000,
            spilled=1_000 * answer + 100,
            latency=asdict(histogram),
            memory_limit_bytes=128_000_000,
            spilled_bytes=2_500_000,
            spill_limit_bytes=10_000_000,
        )
        return status(5, uptimeSeconds=float(answer), buses=[kafka])

    with shown(chromium, answers) as (page, server):
        poll(page, 4)
        # The figures must stand still to be compared.
        server.status = lambda _: answers(20)
        poll(page, 1)
        card = page.locator('[data-bus="kafka"]')
        expect(card).to_contain_text("200,345")
        figures = bus_figures(page, "kafka")
        assert figures["Accepted"] == "200,345"
        assert figures["Acknowledged"] == "180,000"
        assert figures["Waiting"] == "20,300"
        assert figures["Dead-lettered"] == "40"
        assert figures["Dropped"] == "5"
        assert figures["Retried"] == "77"
        assert figures["In memory"] == "150 64.0 MB of 128 MB"
        assert figures["In flight"] == "50 9.0 kB"
        assert figures["Spilled"] == "20,100 2.5 MB of 10.0 MB"
        assert figures["Ack p50, 2 min"] == "6.0 ms p99 91.0 ms"
        expect(card).to_contain_text("accepted 10,000/s")
        expect(card).to_contain_text("acknowledged 9,000/s")
        expect(card).to_contain_text("No error so far")
        meters = card.locator("[role=meter]")
        assert [meters.nth(at).get_attribute("aria-valuenow") for at in (0, 1)] == ["50", "25"]


def test_a_bus_that_is_away_and_whose_limits_are_not_told(chromium: Browser) -> None:
    with shown(
        chromium,
        lambda answer: status(
            answer, buses=[bus("nats", memory_limit_bytes=0, spill_limit_bytes=0)]
        ),
    ) as (page, server):
        card = page.locator('[data-bus="nats"]')
        expect(card.locator(".badge")).to_have_text("connected")
        assert bus_figures(page, "nats")["Ack p50, all"] == f"{NOTHING} p99 {NOTHING}"
        assert card.locator("[role=meter]:visible").count() == 0
        away = bus("nats", connected=False, last_error="refused")
        server.status = lambda _: status(20, buses=[away])
        poll(page, 1)
        expect(card).to_contain_text("not connected")
        expect(card).to_contain_text("Last error, at 18:02:00: refused")
        expect(page.locator("#state")).to_have_text("up, not connected: nats")


def test_what_the_server_says_is_text(chromium: Browser) -> None:
    markup = "<script>window.hurt = 1</script><img src=x onerror='window.hurt = 1'>"
    said = status(
        1,
        name=markup,
        version=markup,
        sessions=[
            session(
                markup,
                state="failed",
                endpoint=markup,
                client=markup,
                exchanges=[markup],
                symbols=[markup],
                dataTypes=[markup],
                error=markup,
            )
        ],
        buses=[bus(markup, last_error=markup, dead_letter_file=markup)],
        events=[{"type": markup, "symbol": markup, markup: markup}],
    )
    with shown(chromium, lambda _: said) as (page, _):
        expect(page.locator(".problem .error")).to_have_text(markup)
        expect(page.locator(".bus .error")).to_contain_text(markup)
        assert page.locator("img, main script").count() == 0
        assert page.evaluate("window.hurt") is None


def test_the_last_events_newest_first_until_paused(chromium: Browser) -> None:
    def answers(answer: int) -> dict[str, Any]:
        numbers = range(answer, answer + 3)
        return status(
            answer,
            events=[{"type": "trade", "exchange": "bitmex", "price": at} for at in numbers],
        )

    with shown(chromium, answers) as (page, server):
        newest = page.locator("#events pre").first
        expect(newest).to_contain_text(f'"price": {server.asked + 2}')
        assert newest.inner_text().startswith('{\n  "type": "trade",\n')
        page.get_by_role("button", name="Pause").press("Enter")
        before = newest.inner_text()
        asked = server.asked
        poll(page, 2)
        assert server.asked > asked
        assert newest.inner_text() == before
        page.get_by_role("button", name="Continue").click()
        expect(newest).not_to_have_text(before)


def test_the_server_goes_away_and_comes_back(chromium: Browser) -> None:
    with MadeUpServer(busy) as server, open_page(chromium, server.url) as watched:
        page = watched.page
        state, notice = page.locator("#state"), page.locator("#notice-text")
        expect(state).to_contain_text("up")
        with server.away():
            expect(state).to_have_text("server away")
            expect(notice).to_contain_text("Away since")
            expect(notice).to_contain_text("Next try in 2 s")
            expect(page.get_by_text("/replay-normalized").first).to_be_visible()
            ratio, text = weakest_contrast(page)
            assert ratio >= CONTRAST_AA, text
        expect(state).to_contain_text("up")
        expect(notice).to_contain_text("Updated every second")
        assert all("ERR_CONNECTION" in complaint for complaint in watched.complaints)


def test_an_answer_that_is_no_status_is_said(chromium: Browser) -> None:
    with MadeUpServer(status) as server, open_page(chromium, server.url) as watched:
        expect(watched.page.locator("#state")).to_have_text("up")
        server.status = lambda _: {"name": "another server"}
        poll(watched.page, 1)
        expect(watched.page.locator("#notice-text")).to_contain_text("cannot read its answer")
        server.status = status
        expect(watched.page.locator("#state")).to_have_text("up")


def test_a_hidden_page_asks_nothing(chromium: Browser) -> None:
    hide = """hidden => {
      Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });
      document.dispatchEvent(new Event('visibilitychange'));
    }"""
    with shown(chromium, status) as (page, server):
        page.evaluate(hide, arg=True)
        page.wait_for_timeout(200)  # for an answer that was under way
        asked = server.asked
        page.wait_for_timeout(1500)
        assert server.asked == asked
        page.evaluate(hide, arg=False)
        expect(page.locator("#uptime")).to_have_text(f"1 min {40 + asked + 1} s")


def test_a_token_is_asked_for_and_kept_until_the_tab_is_closed(chromium: Browser) -> None:
    with MadeUpServer(status) as server, open_page(chromium, "about:blank") as watched:
        page = watched.page
        server.token = "secret"
        page.goto(server.url)
        expect(page.locator("#state")).to_have_text("token needed")
        page.get_by_label("Bearer token").fill("guess")
        page.keyboard.press("Enter")
        expect(page.locator("#token-note")).to_contain_text("refused")
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Enter token").click()
        page.get_by_label("Bearer token").fill("secret")
        page.get_by_role("button", name="Continue").click()
        expect(page.locator("#state")).to_have_text("up")
        page.reload()
        expect(page.locator("#state")).to_have_text("up")
        assert page.evaluate("Object.keys(localStorage)") == []
        assert all("401" in complaint for complaint in watched.complaints)


def test_the_theme_is_chosen_and_kept(chromium: Browser) -> None:
    with shown(chromium, status, scheme="dark") as (page, _):
        scheme = "getComputedStyle(document.documentElement).colorScheme"
        theme = page.locator("#theme")
        expect(theme).to_have_text("Theme: auto")
        theme.press("Enter")
        expect(theme).to_have_text("Theme: light")
        assert page.evaluate(scheme) == "light"
        page.reload()
        expect(theme).to_have_text("Theme: light")
        assert page.evaluate(scheme) == "light"
        theme.click()
        theme.click()
        expect(theme).to_have_text("Theme: auto")
        assert page.evaluate("localStorage.length") == 0


def test_more_sessions_than_are_listed(chromium: Browser) -> None:
    def answers(answer: int) -> dict[str, Any]:
        said = status(answer, sessions=[session(f"r-{at}") for at in range(250)])
        said["totals"]["sessionsRunning"] = 250
        return said

    with shown(chromium, answers) as (page, _):
        expect(page.locator("[data-session]")).to_have_count(100)
        expect(page.locator("#sessions-note")).to_have_text("250 running, 150 of them not listed")
