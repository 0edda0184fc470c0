"""Bronze and Arrow through the Python functions."""

import json
from importlib.resources import files

import pyarrow as pa
import pytest

import tardis_fast
from tardis_fast.proto.lakehouse.bronze.v1.normalized_event_pb2 import NormalizedEvent

SAMPLES = (files(tardis_fast) / "samples" / "messages.jsonl").read_bytes()


def encode(lines: bytes, **options: object) -> pa.BinaryArray:
    """Encode with a fresh encoder."""
    return tardis_fast.BronzeEncoder(**options).encode_json(lines)  # type: ignore[arg-type]


@pytest.mark.parametrize("book_changes", ["level", "message"])
def test_messages_come_back_as_they_were(book_changes: str) -> None:
    events = encode(SAMPLES, book_changes=book_changes)
    assert tardis_fast.decode_to_json(events) == SAMPLES


def test_each_event_can_be_shown_on_its_own() -> None:
    events = encode(SAMPLES)
    lines = tardis_fast.decode_to_json(events, per_event=True).splitlines()
    assert len(lines) == len(events) > SAMPLES.count(b"\n")
    assert {json.loads(line)["type"] for line in lines} == {
        json.loads(line)["type"] for line in SAMPLES.splitlines()
    }


def test_events_are_numbered_through_a_session() -> None:
    encoder = tardis_fast.BronzeEncoder(first_seq=7, meta={"session_id": "s"}, source="me")
    events = [*encoder.encode_json(SAMPLES), *encoder.encode_json(SAMPLES)]
    decoded = [NormalizedEvent.FromString(event.as_py()) for event in events]
    assert [event.event_seq for event in decoded] == list(range(7, 7 + len(events)))
    assert encoder.next_seq == 7 + len(events)
    assert {event.source for event in decoded} == {"me"}
    assert {event.meta["session_id"] for event in decoded} == {"s"}


def test_wide_and_narrow_batches_come_back_as_the_same_bytes() -> None:
    events = encode(SAMPLES)
    wide = tardis_fast.events_to_batch(events)
    assert wide.schema.equals(tardis_fast.bronze_schema())
    assert tardis_fast.batch_to_events(wide).equals(events)
    narrow = tardis_fast.events_by_case(events)
    assert set(narrow) == set(tardis_fast.PAYLOAD_CASES)
    rows = set()
    for case, batch in narrow.items():
        assert batch.schema.equals(tardis_fast.bronze_schema(case))
        back = tardis_fast.batch_to_events(batch, case=case)
        assert tardis_fast.events_to_batch(back, case=case).equals(batch)
        rows.update(back.to_pylist())
    assert rows == set(events.to_pylist())


@pytest.mark.parametrize("kind", [pa.large_binary(), pa.binary_view()])
def test_other_binary_columns_are_taken(kind: pa.DataType) -> None:
    events = encode(SAMPLES)
    other = pa.array(events.to_pylist(), kind)
    assert tardis_fast.events_to_batch(other).equals(tardis_fast.events_to_batch(events))
    assert tardis_fast.decode_to_json(other) == SAMPLES


def test_the_ingest_time_can_be_given() -> None:
    events = encode(SAMPLES)
    fixed = tardis_fast.BronzeEncoder().encode_json(SAMPLES, ingest_micros=1_700_000_000_000_001)
    first = NormalizedEvent.FromString(fixed[0].as_py())
    assert (first.ingest_ts.seconds, first.ingest_ts.nanos) == (1_700_000_000, 1_000)
    assert NormalizedEvent.FromString(events[0].as_py()).ingest_ts.seconds > 1_700_000_000


def test_a_bad_line_is_named_and_nothing_is_encoded() -> None:
    encoder = tardis_fast.BronzeEncoder()
    with pytest.raises(
        tardis_fast.InvalidMessageError, match=r"^line 30: unknown message type `x`"
    ):
        encoder.encode_json(SAMPLES + b'\n{"type":"x"}\n')
    assert encoder.next_seq == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"origin": "past"}, "origin is `past`; use unspecified, realtime, replay or archive"),
        ({"book_changes": "all"}, "book_changes is `all`; use level or message"),
        ({"meta": {"symbols": ""}}, "meta key `symbols` is set by the encoder; choose another"),
    ],
)
def test_bad_options_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(tardis_fast.TardisFastError, match=message):
        encode(b"", **options)


def test_bad_events_are_named_by_row() -> None:
    events = encode(SAMPLES).to_pylist()
    cut = pa.array([events[0], events[1][:-1]])
    with pytest.raises(tardis_fast.InvalidEventError, match="row 1"):
        tardis_fast.events_to_batch(cut)
    with pytest.raises(tardis_fast.InvalidEventError, match="row 1: not a Bronze event"):
        tardis_fast.decode_to_json(cut)
    with pytest.raises(tardis_fast.InvalidEventError, match="row 1"):
        tardis_fast.decode_to_json(pa.array([events[0], None]))
    with pytest.raises(tardis_fast.InvalidEventError, match="row 0"):
        tardis_fast.events_to_batch(pa.array(events), case="disconnect")
    with pytest.raises(tardis_fast.InvalidEventError, match=r"string|Utf8"):
        tardis_fast.decode_to_json(pa.array(["text"]))


def test_other_columns_are_refused() -> None:
    batch = pa.RecordBatch.from_pydict({"price": [1.0]})
    with pytest.raises(tardis_fast.InvalidEventError, match="price"):
        tardis_fast.batch_to_events(batch)


def test_unknown_payload_cases_are_refused() -> None:
    with pytest.raises(
        tardis_fast.TardisFastError, match="unknown payload case `trades`; valid are"
    ):
        tardis_fast.bronze_schema("trades")


def test_rows_of_columns_give_the_events_that_made_them() -> None:
    events = encode(SAMPLES)
    reader = tardis_fast.RowReader("columns", encoder=tardis_fast.BronzeEncoder())
    made, rejected = reader.read(tardis_fast.events_to_batch(events))
    assert (len(made), rejected.num_rows) == (len(events), 0)
    assert made.to_arrow() == events
