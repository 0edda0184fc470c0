"""The schema keeps its published fields, and Arrow has a column for every field."""

from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.descriptor import FieldDescriptor

import tardis_fast
from tardis_fast.proto.lakehouse.bronze.v1.normalized_event_pb2 import DESCRIPTOR, NormalizedEvent

ENVELOPE = NormalizedEvent.DESCRIPTOR
CASES: list[Any] = list(ENVELOPE.oneofs_by_name["payload"].fields)

PUBLISHED = {
    "NormalizedEvent": "source=1 exchange=2 symbol=3 local_ts=4 ingest_ts=5 origin=6 meta=10 "
    "trade=100 book_change=101 book_snapshot=102 quote=103 derivative_ticker=104 liquidation=105 "
    "option_summary=106 book_ticker=107 grouped_book_snapshot=108 trade_bar=109 error=150 "
    "disconnect=151",
    "Trade": "trade_id=1 price_str=2 qty_str=3 side=4 sequence=5 event_ts=10",
    "BookChange": "side=1 action=2 price_str=3 qty_str=4 level=5 sequence=6 event_ts=10",
    "BookSnapshot": "depth=1 bids=2 asks=3 event_ts=10 grouping=11 interval_ms=12 "
    "remove_crossed_levels=13 sequence=14",
    "GroupedBookSnapshot": "depth=1 bids=2 asks=3 event_ts=10 grouping=11 interval_ms=12 "
    "remove_crossed_levels=13 sequence=14",
    "TradeBar": "kind=1 interval=2 interval_ms=3 open_str=4 high_str=5 low_str=6 close_str=7 "
    "volume_str=8 trade_count=9 event_ts=10 end_ts=11",
    "Quote": "bid_price_str=1 bid_qty_str=2 ask_price_str=3 ask_qty_str=4 event_ts=10",
    "BookTicker": "best_bid_price_str=1 best_bid_qty_str=2 best_ask_price_str=3 "
    "best_ask_qty_str=4 event_ts=10",
    "DerivativeTicker": "mark_price_str=1 index_price_str=2 funding_rate_str=3 event_ts=10",
    "Liquidation": "side=1 price_str=2 qty_str=3 order_id=4 event_ts=10",
    "OptionSummary": "iv_str=1 delta_str=2 gamma_str=3 theta_str=4 vega_str=5 oi_str=6 event_ts=10",
    "ControlError": "details=1 subsequent_errors=2 code=3",
    "ControlDisconnect": "reason=1 close_code=2",
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_fields_keep_their_numbers(name: str) -> None:
    fields = DESCRIPTOR.message_types_by_name[name].fields_by_name
    numbers = {field: fields[field].number for field in fields}
    for pair in PUBLISHED[name].split():
        field, number = pair.split("=")
        assert numbers[field] == int(number)


def arrow_type(field: Any) -> pa.DataType:
    """Return the column type that the documentation gives for a field."""
    if field.message_type is not None:
        if field.message_type.full_name == "google.protobuf.Timestamp":
            return pa.timestamp("us", "UTC")
        if field.message_type.GetOptions().map_entry:
            return pa.map_(pa.string(), pa.string())
        if field.message_type.name == "SymbolList":
            return pa.list_(pa.field("element", pa.string()))
        level = pa.struct([("price_str", pa.string()), ("qty_str", pa.string())])
        return pa.list_(pa.field("element", level))
    return {
        FieldDescriptor.TYPE_STRING: pa.string(),
        FieldDescriptor.TYPE_ENUM: pa.string(),
        FieldDescriptor.TYPE_BOOL: pa.bool_(),
        FieldDescriptor.TYPE_INT32: pa.int32(),
        FieldDescriptor.TYPE_INT64: pa.int64(),
        FieldDescriptor.TYPE_UINT32: pa.int64(),
        FieldDescriptor.TYPE_UINT64: pa.int64(),
    }[field.type]


def columns(message: Any) -> list[tuple[str, pa.DataType]]:
    """Return the columns of a message's fields, by number, without the payload."""
    fields = [field for field in message.fields if field not in CASES]
    return [(f.name, arrow_type(f)) for f in sorted(fields, key=lambda field: field.number)]


def test_wide_schema_has_every_field() -> None:
    cases = [(case.name, pa.struct(columns(case.message_type))) for case in CASES]
    expected = pa.schema([*columns(ENVELOPE), *cases])
    assert tardis_fast.bronze_schema().equals(expected)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_narrow_schemas_have_every_field(case: Any) -> None:
    expected = pa.schema([*columns(ENVELOPE), *columns(case.message_type)])
    assert tardis_fast.bronze_schema(case.name).equals(expected)
