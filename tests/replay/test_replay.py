"""Replaying the sample market from Python."""

import asyncio
import gc
import json
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import pytest

import tardis_fast
from tardis_fast import FeedOptions, Stream
from tardis_fast.sample_api import SampleApiThread

START = datetime(2020, 2, 1, tzinfo=timezone.utc)
TRADES = [{"channel": "trade", "symbols": ["XBTUSD"]}]


def stream(*data_types: str, minutes: int = 3, exchange: str = "bitmex") -> Stream:
    """Ask for the first minutes of a day."""
    return Stream(exchange, START, START + timedelta(minutes=minutes), data_types)


def test_chunks_hold_the_messages_in_order(feed: FeedOptions) -> None:
    lines = b"".join(tardis_fast.replay_normalized(stream("trade", "book_change"), feed=feed))
    messages = [json.loads(line) for line in lines.splitlines()]
    assert {message["type"] for message in messages} == {"trade", "book_change"}
    times = [message["localTimestamp"] for message in messages]
    assert times == sorted(times)
    again = tardis_fast.replay_normalized(stream("trade", "book_change"), feed=feed)
    assert list(again.messages()) == messages


def test_asyncio_reads_the_same(feed: FeedOptions) -> None:
    async def read() -> bytes:
        replay = tardis_fast.replay_normalized(stream("trade", "quote"), feed=feed)
        return b"".join([chunk async for chunk in replay])

    async def read_messages() -> list[object]:
        replay = tardis_fast.replay_normalized(stream("trade", "quote"), feed=feed)
        return [message async for message in replay.messages()]

    lines = b"".join(tardis_fast.replay_normalized(stream("trade", "quote"), feed=feed))
    assert asyncio.run(read()) == lines
    assert asyncio.run(read_messages()) == [json.loads(line) for line in lines.splitlines()]


def test_many_replays_in_one_loop_need_no_thread_each(feed: FeedOptions) -> None:
    async def read() -> int:
        replay = tardis_fast.replay_normalized(stream("trade"), feed=feed)
        return sum([len(chunk) async for chunk in replay])

    async def read_all() -> set[int]:
        return set(await asyncio.gather(*(read() for _ in range(100))))

    asyncio.run(read())
    threads = len(list(Path("/proc/self/task").iterdir()))
    assert len(asyncio.run(read_all())) == 1
    assert len(list(Path("/proc/self/task").iterdir())) < threads + 20


def test_an_event_loop_opens_one_pipe_and_takes_it_along(feed: FeedOptions) -> None:
    def pipes() -> set[str]:
        links = (str(link.readlink()) for link in Path("/proc/self/fd").iterdir() if link.exists())
        return {link for link in links if link.startswith("pipe:")}

    async def read() -> None:
        replay = tardis_fast.replay_normalized(stream("trade"), feed=feed)
        async for _ in replay:
            pass

    async def read_some() -> set[str]:
        await asyncio.gather(*(read() for _ in range(10)))
        return pipes() - before

    gc.collect()
    before = pipes()
    for _ in range(3):
        assert len(asyncio.run(read_some())) == 1
        gc.collect()
        assert pipes() <= before


def test_a_reader_that_is_cancelled_leaves_the_others_alone(feed: FeedOptions) -> None:
    async def read() -> bytes:
        replay = tardis_fast.replay_normalized(stream("trade", "book_change"), feed=feed)
        return b"".join([chunk async for chunk in replay])

    async def read_all() -> list[bytes]:
        tasks = [asyncio.create_task(read()) for _ in range(20)]
        await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(one, asyncio.CancelledError) for one in found[::2])
        return [one for one in found[1::2] if isinstance(one, bytes)]

    lines = b"".join(tardis_fast.replay_normalized(stream("trade", "book_change"), feed=feed))
    assert asyncio.run(read_all()) == [lines] * 10


def test_raw_messages_are_untouched(feed: FeedOptions) -> None:
    replay = tardis_fast.replay("bitmex", date(2020, 2, 1), "2020-02-01T00:02", TRADES, feed=feed)
    messages = list(replay.messages())
    assert messages
    for message in messages:
        assert message is not None
        assert message["message"]["table"] == "trade"
        assert len(message["localTimestamp"]) == len("2020-02-01T00:00:00.0000000Z")


def test_disconnects_are_told_to_those_who_ask(feed: FeedOptions) -> None:
    end = START + timedelta(hours=3)
    raw = tardis_fast.replay("bitmex", START, end, TRADES, with_disconnects=True, feed=feed)
    told = list(raw.messages()).count(None)
    assert told
    normalized = tardis_fast.replay_normalized(
        Stream("bitmex", START, end, ["trade"], ["XBTUSD"], with_disconnect_messages=True),
        feed=feed,
    )
    types = [message["type"] for message in normalized.messages() if message is not None]
    assert types.count("disconnect") == told


def test_streams_are_merged_by_the_time_of_receipt(feed: FeedOptions) -> None:
    both = [stream("trade"), stream("trade", exchange="deribit")]
    merged = list(tardis_fast.replay_normalized(*both, feed=feed).messages())
    alone = [
        message
        for one in both
        for message in tardis_fast.replay_normalized(one, feed=feed).messages()
    ]
    assert {message["exchange"] for message in merged if message} == {"bitmex", "deribit"}
    assert merged == sorted(alone, key=lambda message: (message or {})["localTimestamp"])


def test_arrow_holds_the_same_messages(feed: FeedOptions) -> None:
    wanted = stream("trade", "quote", "derivative_ticker")
    lines = b"".join(tardis_fast.replay_normalized(wanted, feed=feed))
    tables = tardis_fast.replay_normalized(wanted, feed=feed).to_arrow()
    assert set(tables) == {"trade", "quote", "derivativeTicker"}
    assert sum(table.num_rows for table in tables.values()) == lines.count(b"\n")
    batches = list(tardis_fast.replay_normalized(wanted, feed=feed).record_batches())
    decoded = [tardis_fast.decode_to_json(tardis_fast.batch_to_events(batch)) for batch in batches]
    assert b"".join(decoded) == lines


def test_events_are_asked_for_before_the_first_chunk(feed: FeedOptions) -> None:
    replay = tardis_fast.replay_normalized(stream("trade"), feed=feed)
    next(iter(replay))
    with pytest.raises(tardis_fast.ConfigError, match="before its first chunk"):
        replay.to_arrow()


def test_progress_counts_what_was_read(feed: FeedOptions) -> None:
    replay = tardis_fast.replay_normalized(stream("trade", minutes=5), feed=feed)
    assert replay.progress.messages == 0
    count = len(list(replay.messages()))
    done = replay.progress
    assert done.messages == count
    assert done.slices == done.slices_total > 1
    assert done.downloaded_bytes == done.compressed_bytes < done.bytes
    assert done.market_time is not None
    assert START <= done.market_time < START + timedelta(minutes=5)


def test_a_closed_replay_ends(feed: FeedOptions) -> None:
    with tardis_fast.replay_normalized(stream("trade", minutes=600), feed=feed) as replay:
        chunks = iter(replay)
        next(chunks)
    assert list(chunks) == []


def test_the_second_replay_comes_from_the_cache(
    feed: FeedOptions, sample_api: SampleApiThread
) -> None:
    wanted = stream("trade", minutes=30)
    first = b"".join(tardis_fast.replay_normalized(wanted, feed=feed))
    asked = sample_api.api.requests
    assert b"".join(tardis_fast.replay_normalized(wanted, feed=feed)) == first
    # The first and the last minute are always asked for: they prove access to the range.
    assert sample_api.api.requests == asked + 2
    offline = FeedOptions(endpoint="http://127.0.0.1:9/v1", cache_dir=feed.cache_dir, offline=True)
    assert b"".join(tardis_fast.replay_normalized(wanted, feed=offline)) == first


def test_an_empty_range_gives_nothing(feed: FeedOptions) -> None:
    assert list(tardis_fast.replay_normalized(stream("trade", minutes=0), feed=feed)) == []
    assert list(tardis_fast.replay_normalized(feed=feed)) == []


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        (stream("nothing"), "`nothing`"),
        (stream("trade", exchange="mtgox"), '`exchange` cannot be "mtgox"'),
        (stream("trade", minutes=-5), "`to` (2020-01-31T23:55:00.000Z) is before"),
        (stream("option_summary"), "bitmex does not have it"),
        (Stream("bitmex", "yesterday", START, ["trade"]), '`from` cannot be "yesterday"'),
        (Stream("bitmex", START, START, []), "at least one data type"),
    ],
)
def test_bad_requests_are_refused_at_once(feed: FeedOptions, wanted: Stream, text: str) -> None:
    with pytest.raises(tardis_fast.ConfigError) as error:
        tardis_fast.replay_normalized(wanted, feed=feed)
    assert text in str(error.value)


def test_what_the_api_refuses_is_told_with_its_words(feed: FeedOptions) -> None:
    replay = tardis_fast.replay("okex", START, START + timedelta(minutes=1), feed=feed)
    with pytest.raises(tardis_fast.ReplayError) as error:
        list(replay)
    assert error.value.status == 400
    assert "the sample market has no exchange `okex`" in str(error.value)
