"""The Rust encoder's bytes mean the same to Python's generated classes."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from bronze_model import LETTERS, OPTION_NUMBERS, events
from hypothesis import given, settings
from hypothesis import strategies as st

import tardis_fast
from tardis_fast.proto.lakehouse.bronze.v1.normalized_event_pb2 import NormalizedEvent

META = {"request_id": "r-1", "zone": "東京", "empty": ""}
INGEST = 1_700_000_000_123_456
SAMPLES = (files(tardis_fast) / "samples" / "messages.jsonl").read_text("utf-8").splitlines()
CONFORMANCE = Path(__file__).parents[3] / "shared" / "conformance" / "mappers"


def check(message: dict[str, Any], line: str) -> None:
    """Compare the encoder's events with the model's, in both modes."""
    for book_changes in ("level", "message"):
        encoder = tardis_fast.BronzeEncoder(
            origin="archive",
            meta=META,
            book_changes="level" if book_changes == "level" else "message",
            first_seq=5,
        )
        encoded = encoder.encode_json(line.encode(), ingest_micros=INGEST).to_pylist()
        decoded = [NormalizedEvent.FromString(event) for event in encoded]
        expected = list(
            events(
                message,
                meta=META,
                first_seq=5,
                ingest_micros=INGEST,
                per_level=book_changes == "level",
            )
        )
        assert decoded == expected


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
numbers = st.one_of(
    st.none(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-(10**12), 10**12).map(lambda n: n / 1_000),
    st.integers(0, 10**9),
)
times = st.one_of(
    st.none(),
    st.datetimes().map(lambda t: t.strftime("%Y-%m-%dT%H:%M:%S.").rjust(20, "0") + "001000Z"),
    st.integers(0, 4 * 10**12).map(lambda n: f"20{n % 90 + 10}-02-28T23:59:59.{n % 1000:03}Z"),
    st.integers(0, 10**6 - 1).map(lambda n: f"2024-02-29T00:00:00.{n:06}Z"),
)
levels = st.lists(st.fixed_dictionaries({"price": numbers, "amount": numbers}), max_size=8)
gaps = st.lists(
    st.one_of(st.just({}), st.fixed_dictionaries({"price": numbers, "amount": numbers})), max_size=8
)
instrument = {"symbol": texts, "exchange": texts}
stamps = {"timestamp": times, "localTimestamp": times}


def message(
    kind: str, fields: dict[str, Any], optional: dict[str, Any] | None = None
) -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy for messages of a type."""
    return st.fixed_dictionaries({"type": st.just(kind), **fields}, optional=optional or {})


fill = {**instrument, "price": numbers, "amount": numbers, **stamps}
fill["side"] = st.sampled_from(["buy", "sell", "unknown"])
snapshot = {**instrument, "depth": st.integers(0, 2**32 - 1), "interval": st.integers(0, 2**40)}
bar_numbers = ("open", "high", "low", "close", "volume", "buyVolume", "sellVolume", "vwap")
funding = ("lastPrice", "openInterest", "fundingRate", "predictedFundingRate", "indexPrice")
one_level = gaps.map(lambda some: (some or [{}])[:1])

MESSAGES = {
    "trade": message("trade", fill, {"id": texts}),
    "liquidation": message("liquidation", fill, {"id": texts}),
    "book_change": message(
        "book_change",
        {**instrument, "isSnapshot": st.booleans(), "bids": levels, "asks": levels, **stamps},
    ),
    "book_snapshot": message(
        "book_snapshot",
        {**snapshot, "name": texts.map("s".__add__), "bids": gaps, "asks": gaps, **stamps},
    ),
    "grouped_book_snapshot": message(
        "book_snapshot",
        {**snapshot, "name": texts, "grouping": numbers, "bids": gaps, "asks": gaps, **stamps},
    ),
    "quote": message(
        "book_snapshot",
        {
            **snapshot,
            "depth": st.just(1),
            "name": st.sampled_from(["quote", "quote_10s"]),
            "bids": one_level,
            "asks": one_level,
            **stamps,
        },
    ),
    "derivative_ticker": message(
        "derivative_ticker",
        {**instrument, **stamps},
        {**dict.fromkeys((*funding, "markPrice"), numbers), "fundingTimestamp": times},
    ),
    "option_summary": message(
        "option_summary",
        {**instrument, **stamps},
        {
            **dict.fromkeys(OPTION_NUMBERS.values(), numbers),
            "optionType": st.sampled_from(["call", "put"]),
            "expirationDate": times,
            "underlyingIndex": texts,
        },
    ),
    "book_ticker": st.tuples(
        message("book_ticker", {**instrument, **stamps}, dict.fromkeys(LETTERS, numbers)),
        st.randoms(),
    ).map(lambda pair: dict(pair[1].sample(sorted(pair[0].items(), key=str), len(pair[0])))),
    "trade_bar": message(
        "trade_bar",
        {
            **instrument,
            "name": texts,
            "interval": st.integers(0, 10**9),
            "kind": st.sampled_from(["time", "tick", "volume"]),
            **dict.fromkeys(bar_numbers, numbers),
            "trades": st.integers(0, 2**53),
            "openTimestamp": times,
            "closeTimestamp": times,
            **stamps,
        },
    ),
    "error": message(
        "error",
        {
            "exchange": texts,
            "localTimestamp": times,
            "details": texts,
            "subSequentErrorsCount": st.integers(0, 2**32 - 1),
        },
    ),
    "disconnect": message(
        "disconnect",
        {"exchange": texts, "localTimestamp": times},
        {"symbols": st.lists(texts, max_size=4)},
    ),
}


@pytest.mark.parametrize("kind", sorted(MESSAGES))
def test_random_messages(kind: str) -> None:
    @settings(max_examples=150, deadline=None)
    @given(MESSAGES[kind])
    def compare(some: dict[str, Any]) -> None:
        check(some, json.dumps(some, ensure_ascii=False))

    compare()


@pytest.mark.parametrize("line", SAMPLES)
def test_samples(line: str) -> None:
    check(json.loads(line), line)


def test_conformance_messages() -> None:
    if not CONFORMANCE.is_dir():
        print(f"conformance data is not there: {CONFORMANCE}")  # noqa: T201 - said, as asked for
        return
    count = 0
    for path in sorted(CONFORMANCE.glob("*.jsonl")):
        for case in map(json.loads, path.read_text("utf-8").splitlines()):
            for step in case["steps"]:
                for some in step.get("output", ()):
                    check(some, json.dumps(some, ensure_ascii=False))
                    count += 1
    assert count > 600
