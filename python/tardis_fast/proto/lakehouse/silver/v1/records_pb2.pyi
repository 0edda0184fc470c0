import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Side(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SIDE_UNSPECIFIED: _ClassVar[Side]
    SIDE_BUY: _ClassVar[Side]
    SIDE_SELL: _ClassVar[Side]

class Action(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ACTION_UNSPECIFIED: _ClassVar[Action]
    ACTION_UPSERT: _ClassVar[Action]
    ACTION_DELETE: _ClassVar[Action]

class BarKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    BAR_KIND_UNSPECIFIED: _ClassVar[BarKind]
    BAR_KIND_TICK: _ClassVar[BarKind]
    BAR_KIND_TIME: _ClassVar[BarKind]
    BAR_KIND_VOLUME: _ClassVar[BarKind]

class OptionType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OPTION_TYPE_UNSPECIFIED: _ClassVar[OptionType]
    OPTION_TYPE_CALL: _ClassVar[OptionType]
    OPTION_TYPE_PUT: _ClassVar[OptionType]

class ErrorCode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ERROR_CODE_UNSPECIFIED: _ClassVar[ErrorCode]
    ERROR_CODE_WS_CONNECT: _ClassVar[ErrorCode]
    ERROR_CODE_WS_SEND: _ClassVar[ErrorCode]
    ERROR_CODE_SOURCE_AUTH: _ClassVar[ErrorCode]
    ERROR_CODE_SOURCE_RATE_LIMIT: _ClassVar[ErrorCode]
SIDE_UNSPECIFIED: Side
SIDE_BUY: Side
SIDE_SELL: Side
ACTION_UNSPECIFIED: Action
ACTION_UPSERT: Action
ACTION_DELETE: Action
BAR_KIND_UNSPECIFIED: BarKind
BAR_KIND_TICK: BarKind
BAR_KIND_TIME: BarKind
BAR_KIND_VOLUME: BarKind
OPTION_TYPE_UNSPECIFIED: OptionType
OPTION_TYPE_CALL: OptionType
OPTION_TYPE_PUT: OptionType
ERROR_CODE_UNSPECIFIED: ErrorCode
ERROR_CODE_WS_CONNECT: ErrorCode
ERROR_CODE_WS_SEND: ErrorCode
ERROR_CODE_SOURCE_AUTH: ErrorCode
ERROR_CODE_SOURCE_RATE_LIMIT: ErrorCode

class Lineage(_message.Message):
    __slots__ = ("exchange", "symbol", "event_ts", "local_ts", "ingest_ts", "source", "session", "event_seq")
    EXCHANGE_FIELD_NUMBER: _ClassVar[int]
    SYMBOL_FIELD_NUMBER: _ClassVar[int]
    EVENT_TS_FIELD_NUMBER: _ClassVar[int]
    LOCAL_TS_FIELD_NUMBER: _ClassVar[int]
    INGEST_TS_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    EVENT_SEQ_FIELD_NUMBER: _ClassVar[int]
    exchange: str
    symbol: str
    event_ts: _timestamp_pb2.Timestamp
    local_ts: _timestamp_pb2.Timestamp
    ingest_ts: _timestamp_pb2.Timestamp
    source: str
    session: str
    event_seq: int
    def __init__(self, exchange: _Optional[str] = ..., symbol: _Optional[str] = ..., event_ts: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., local_ts: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., ingest_ts: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., source: _Optional[str] = ..., session: _Optional[str] = ..., event_seq: _Optional[int] = ...) -> None: ...

class Level(_message.Message):
    __slots__ = ("price_e8", "qty_e8")
    PRICE_E8_FIELD_NUMBER: _ClassVar[int]
    QTY_E8_FIELD_NUMBER: _ClassVar[int]
    price_e8: int
    qty_e8: int
    def __init__(self, price_e8: _Optional[int] = ..., qty_e8: _Optional[int] = ...) -> None: ...

class TradeRecord(_message.Message):
    __slots__ = ("lineage", "trade_id", "price_e8", "qty_e8", "side")
    LINEAGE_FIELD_NUMBER: _ClassVar[int]
    TRADE_ID_FIELD_NUMBER: _ClassVar[int]
    PRICE_E8_FIELD_NUMBER: _ClassVar[int]
    QTY_E8_FIELD_NUMBER: _ClassVar[int]
    SIDE_FIELD_NUMBER: _ClassVar[int]
    lineage: Lineage
    trade_id: str
    price_e8: int
    qty_e8: int
    side: Side
    def __init__(self, lineage: _Optional[_Union[Lineage, _Mapping]] = ..., trade_id: _Optional[str] = ..., price_e8: _Optional[int] = ..., qty_e8: _Optional[int] = ..., side: _Optional[_Union[Side, str]] = ...) -> None: ...

class BookChangeRecord(_message.Message):
    __slots__ = ("lineage", "side", "action", "price_e8", "qty_e8", "is_snapshot", "part", "parts")
    LINEAGE_FIELD_NUMBER: _ClassVar[int]
    SIDE_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    PRICE_E8_FIELD_NUMBER: _ClassVar[int]
    QTY_E8_FIELD_NUMBER: _ClassVar[int]
    IS_SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    lineage: Lineage
    side: Side
    action: Action
    price_e8: int
    qty_e8: int
    is_snapshot: bool
    part: int
    parts: int
    def __init__(self, lineage: _Optional[_Union[Lineage, _Mapping]] = ..., side: _Optional[_Union[Side, str]] = ..., action: _Optional[_Union[Action, str]] = ..., price_e8: _Optional[int] = ..., qty_e8: _Optional[int] = ..., is_snapshot: bool = ..., part: _Optional[int] = ..., parts: _Optional[int] = ...) -> None: ...

class BookSnapshotRecord(_message.Message):
    __slots__ = ("lineage", "name", "depth", "interval_ms", "bids", "asks")
    LINEAGE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_MS_FIELD_NUMBER: _ClassVar[int]
    BIDS_FIELD_NUMBER: _ClassVar[int]
    ASKS_FIELD_NUMBER: _ClassVar[int]
    lineage: Lineage
    name: str
    depth: int
    interval_ms: int
    bids: _containers.RepeatedCompositeFieldContainer[Level]
    asks: _containers.RepeatedCompositeFieldContainer[Level]
    def __init__(self, lineage: _Optional[_Union[Lineage, _Mapping]] = ..., name: _Optional[str] = ..., depth: _Optional[int] = ..., interval_ms: _Optional[int] = ..., bids: _Optional[_Iterable[_Union[Level, _Mapping]]] = ..., asks: _Optional[_Iterable[_Union[Level, _Mapping]]] = ...) -> None: ...

class QuoteRecord(_message.Message):
    __slots__ = ("lineage", "name", "interval_ms", "bid_price_e8", "bid_qty_e8", "ask_price_e8", "ask_qty_e8")
    LINEAGE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_MS_FIELD_NUMBER: _ClassVar[int]
    BID_PRICE_E8_FIELD_NUMBER: _ClassVar[int]
    BID_QTY_E8_FIELD_NUMBER: _ClassVar[int]
    ASK_PRICE_E8_FIELD_NUMBER: _ClassVar[int]
    ASK_QTY_E8_FIELD_NUMBER: _ClassVar[int]
    lineage: Lineage
    name: str
    interval_ms: int
    bid_price_e8: int
    bid_qty_e8: int
    ask_price_e8: int
    ask_qty_e8: int
    def __init__(self, lineage: _Optional[_Union[Lineage, _Mapping]] = ..., name: _Optional[str] = ..., interval_ms: _Optional[int] = ..., bid_price_e8: _Optional[int] = ..., bid_qty_e8: _Optional[int] = ..., ask_price_e8: _Optional[int] = ..., ask_qty_e8: _Optional[int] = ...) -> None: ...

class DerivativeTickerRecord(_message.Message):
    __slots__ = ("lineage", "last_price_e8", "mark_price_e8", "index_price_e8", "open_interest_e8", "funding_rate_e9", "predicted_funding_rate_e9", "funding_ts")
    LINEAGE_FIELD_NUMBER: _ClassVar[int]
    LAST_PRICE_E8_FIELD_NUMBER: _ClassVar[int]
    MARK_PRICE_E8_FIELD_NUMBER: _ClassVar[int]
    INDEX_PRICE_E8_FIELD_NUMBER: _ClassVar[int]
    OPEN_INTEREST_E8_FIELD_NUMBER: _ClassVar[int]
    FUNDING_RATE_E9_FIELD_NUMBER: _ClassVar[int]
    PREDICTED_FUNDING_RATE_E9_FIELD_NUMBER: _ClassVar[int]
    FUNDING_TS_FIELD_NUMBER: _ClassVar[int]
    lineage: Lineage
    last_price_e8: int
    mark_price_e8: int
    index_price_e8: int
    open_interest_e8: int
    funding_rate_e9: int
    predicted_funding_rate_e9: int
    funding_ts: _timestamp_pb2.Timestamp
    def __init__(self, lineage: _Optional[_Union[Lineage, _Mapping]] = ..., last_price_e8: _Optional[int] = ..., mark_price_e8: _Optional[int] = ..., index_price_e8: _Optional[int] = ..., open_interest_e8: _Optional[int] = ..., funding_rate_e9: _Optional[int] = ..., predicted_funding_rate_e9: _Optional[int] = ..., funding_ts: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class LiquidationRecord(_message.Message):
    __slots__ = ("lineage", "order_id", "price_e8", "qty_e8", "side")
    LINEAGE_FIELD_NUMBER: _ClassVar[int]
    ORDER_ID_FIELD_NUMBER: _ClassVar[int]
    PRICE_E8_FIELD_NUMBER: _ClassVar[int]
    QTY_E8_FIELD_NUMBER: _ClassVar[int]
    SIDE_FIELD_NUMBER: _ClassVar[int]
    lineage: Lineage
    order_id: str
    price_e8: int
    qty_e8: int
    side: Side
    def __init__(self, lineage: _Optional[_Union[Lineage, _Mapping]] = ..., order_id: _Optional[str] = ..., price_e8: _Optional[int] = ..., qty_e8: _Optional[int] = ..., side: _Optional[_Union[Side, str]] = ...) -> None: ...

class OptionSummaryRecord(_message.Message):
    __slots__ = ("lineage", "option_type", "strike_price_e8", "expiration_ts", "best_bid_price_e8", "best_bid_qty_e8", "best_bid_iv_e6", "best_ask_price_e8", "best_ask_qty_e8", "best_ask_iv_e6", "last_price_e8", "mark_price_e8", "mark_iv_e6", "open_interest_e8", "delta_e9", "gamma_e9", "theta_e9", "vega_e9", "rho_e9", "underlying_price_e8", "underlying_index")
    LINEAGE_FIELD_NUMBER: _ClassVar[int]
    OPTION_TYPE_FIELD_NUMBER: _ClassVar[int]
    STRIKE_PRICE_E8_FIELD_NUMBER: _ClassVar[int]
    EXPIRATION_TS_FIELD_NUMBER: _ClassVar[int]
    BEST_BID_PRICE_E8_FIELD_NUMBER: _ClassVar[int]
    BEST_BID_QTY_E8_FIELD_NUMBER: _ClassVar[int]
    BEST_BID_IV_E6_FIELD_NUMBER: _ClassVar[int]
    BEST_ASK_PRICE_E8_FIELD_NUMBER: _ClassVar[int]
    BEST_ASK_QTY_E8_FIELD_NUMBER: _ClassVar[int]
    BEST_ASK_IV_E6_FIELD_NUMBER: _ClassVar[int]
    LAST_PRICE_E8_FIELD_NUMBER: _ClassVar[int]
    MARK_PRICE_E8_FIELD_NUMBER: _ClassVar[int]
    MARK_IV_E6_FIELD_NUMBER: _ClassVar[int]
    OPEN_INTEREST_E8_FIELD_NUMBER: _ClassVar[int]
    DELTA_E9_FIELD_NUMBER: _ClassVar[int]
    GAMMA_E9_FIELD_NUMBER: _ClassVar[int]
    THETA_E9_FIELD_NUMBER: _ClassVar[int]
    VEGA_E9_FIELD_NUMBER: _ClassVar[int]
    RHO_E9_FIELD_NUMBER: _ClassVar[int]
    UNDERLYING_PRICE_E8_FIELD_NUMBER: _ClassVar[int]
    UNDERLYING_INDEX_FIELD_NUMBER: _ClassVar[int]
    lineage: Lineage
    option_type: OptionType
    strike_price_e8: int
    expiration_ts: _timestamp_pb2.Timestamp
    best_bid_price_e8: int
    best_bid_qty_e8: int
    best_bid_iv_e6: int
    best_ask_price_e8: int
    best_ask_qty_e8: int
    best_ask_iv_e6: int
    last_price_e8: int
    mark_price_e8: int
    mark_iv_e6: int
    open_interest_e8: int
    delta_e9: int
    gamma_e9: int
    theta_e9: int
    vega_e9: int
    rho_e9: int
    underlying_price_e8: int
    underlying_index: str
    def __init__(self, lineage: _Optional[_Union[Lineage, _Mapping]] = ..., option_type: _Optional[_Union[OptionType, str]] = ..., strike_price_e8: _Optional[int] = ..., expiration_ts: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., best_bid_price_e8: _Optional[int] = ..., best_bid_qty_e8: _Optional[int] = ..., best_bid_iv_e6: _Optional[int] = ..., best_ask_price_e8: _Optional[int] = ..., best_ask_qty_e8: _Optional[int] = ..., best_ask_iv_e6: _Optional[int] = ..., last_price_e8: _Optional[int] = ..., mark_price_e8: _Optional[int] = ..., mark_iv_e6: _Optional[int] = ..., open_interest_e8: _Optional[int] = ..., delta_e9: _Optional[int] = ..., gamma_e9: _Optional[int] = ..., theta_e9: _Optional[int] = ..., vega_e9: _Optional[int] = ..., rho_e9: _Optional[int] = ..., underlying_price_e8: _Optional[int] = ..., underlying_index: _Optional[str] = ...) -> None: ...

class BookTickerRecord(_message.Message):
    __slots__ = ("lineage", "bid_price_e8", "bid_qty_e8", "ask_price_e8", "ask_qty_e8")
    LINEAGE_FIELD_NUMBER: _ClassVar[int]
    BID_PRICE_E8_FIELD_NUMBER: _ClassVar[int]
    BID_QTY_E8_FIELD_NUMBER: _ClassVar[int]
    ASK_PRICE_E8_FIELD_NUMBER: _ClassVar[int]
    ASK_QTY_E8_FIELD_NUMBER: _ClassVar[int]
    lineage: Lineage
    bid_price_e8: int
    bid_qty_e8: int
    ask_price_e8: int
    ask_qty_e8: int
    def __init__(self, lineage: _Optional[_Union[Lineage, _Mapping]] = ..., bid_price_e8: _Optional[int] = ..., bid_qty_e8: _Optional[int] = ..., ask_price_e8: _Optional[int] = ..., ask_qty_e8: _Optional[int] = ...) -> None: ...

class GroupedBookSnapshotRecord(_message.Message):
    __slots__ = ("lineage", "name", "depth", "interval_ms", "grouping_e8", "bids", "asks")
    LINEAGE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_MS_FIELD_NUMBER: _ClassVar[int]
    GROUPING_E8_FIELD_NUMBER: _ClassVar[int]
    BIDS_FIELD_NUMBER: _ClassVar[int]
    ASKS_FIELD_NUMBER: _ClassVar[int]
    lineage: Lineage
    name: str
    depth: int
    interval_ms: int
    grouping_e8: int
    bids: _containers.RepeatedCompositeFieldContainer[Level]
    asks: _containers.RepeatedCompositeFieldContainer[Level]
    def __init__(self, lineage: _Optional[_Union[Lineage, _Mapping]] = ..., name: _Optional[str] = ..., depth: _Optional[int] = ..., interval_ms: _Optional[int] = ..., grouping_e8: _Optional[int] = ..., bids: _Optional[_Iterable[_Union[Level, _Mapping]]] = ..., asks: _Optional[_Iterable[_Union[Level, _Mapping]]] = ...) -> None: ...

class TradeBarRecord(_message.Message):
    __slots__ = ("lineage", "name", "kind", "interval", "open_e8", "high_e8", "low_e8", "close_e8", "volume_e8", "buy_volume_e8", "sell_volume_e8", "vwap_e8", "trade_count", "start_ts", "open_ts", "close_ts")
    LINEAGE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_FIELD_NUMBER: _ClassVar[int]
    OPEN_E8_FIELD_NUMBER: _ClassVar[int]
    HIGH_E8_FIELD_NUMBER: _ClassVar[int]
    LOW_E8_FIELD_NUMBER: _ClassVar[int]
    CLOSE_E8_FIELD_NUMBER: _ClassVar[int]
    VOLUME_E8_FIELD_NUMBER: _ClassVar[int]
    BUY_VOLUME_E8_FIELD_NUMBER: _ClassVar[int]
    SELL_VOLUME_E8_FIELD_NUMBER: _ClassVar[int]
    VWAP_E8_FIELD_NUMBER: _ClassVar[int]
    TRADE_COUNT_FIELD_NUMBER: _ClassVar[int]
    START_TS_FIELD_NUMBER: _ClassVar[int]
    OPEN_TS_FIELD_NUMBER: _ClassVar[int]
    CLOSE_TS_FIELD_NUMBER: _ClassVar[int]
    lineage: Lineage
    name: str
    kind: BarKind
    interval: int
    open_e8: int
    high_e8: int
    low_e8: int
    close_e8: int
    volume_e8: int
    buy_volume_e8: int
    sell_volume_e8: int
    vwap_e8: int
    trade_count: int
    start_ts: _timestamp_pb2.Timestamp
    open_ts: _timestamp_pb2.Timestamp
    close_ts: _timestamp_pb2.Timestamp
    def __init__(self, lineage: _Optional[_Union[Lineage, _Mapping]] = ..., name: _Optional[str] = ..., kind: _Optional[_Union[BarKind, str]] = ..., interval: _Optional[int] = ..., open_e8: _Optional[int] = ..., high_e8: _Optional[int] = ..., low_e8: _Optional[int] = ..., close_e8: _Optional[int] = ..., volume_e8: _Optional[int] = ..., buy_volume_e8: _Optional[int] = ..., sell_volume_e8: _Optional[int] = ..., vwap_e8: _Optional[int] = ..., trade_count: _Optional[int] = ..., start_ts: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., open_ts: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., close_ts: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ErrorRecord(_message.Message):
    __slots__ = ("lineage", "details", "subsequent_errors", "code")
    LINEAGE_FIELD_NUMBER: _ClassVar[int]
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    SUBSEQUENT_ERRORS_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    lineage: Lineage
    details: str
    subsequent_errors: int
    code: ErrorCode
    def __init__(self, lineage: _Optional[_Union[Lineage, _Mapping]] = ..., details: _Optional[str] = ..., subsequent_errors: _Optional[int] = ..., code: _Optional[_Union[ErrorCode, str]] = ...) -> None: ...

class DisconnectRecord(_message.Message):
    __slots__ = ("lineage", "reason", "close_code", "symbols")
    LINEAGE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    CLOSE_CODE_FIELD_NUMBER: _ClassVar[int]
    SYMBOLS_FIELD_NUMBER: _ClassVar[int]
    lineage: Lineage
    reason: str
    close_code: int
    symbols: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, lineage: _Optional[_Union[Lineage, _Mapping]] = ..., reason: _Optional[str] = ..., close_code: _Optional[int] = ..., symbols: _Optional[_Iterable[str]] = ...) -> None: ...
