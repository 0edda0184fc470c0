"""The columns of each Silver table, and the Bronze fields they are made of.

Names, scales and order are those of `lakehouse.silver.v1`; the lineage comes first in every table.
Required figures must be there, optional ones are NULL where the source had none. Computed
figures are sums, averages and models of doubles: their last digits are noise, and may be rounded on
request.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tardis_fast.spark.scaling import E6, E8, E9, Scale, misfit, scaled

LINEAGE = (
    "exchange",
    "symbol",
    "event_ts",
    "local_ts",
    "ingest_ts",
    "source",
    "session",
    "event_seq",
)
BY_POSITION = (
    "CASE WHEN {row}.session IS NOT NULL AND {row}.event_seq > 0 "
    "THEN concat('seq:', {row}.event_seq, ':', {row}.session) END"
)
"""What identifies an event: its position in its session."""
BY_TRADE_ID = (
    "CASE WHEN {row}.trade_id <> '' THEN concat_ws(':', 'id', unix_micros({row}.event_ts), "
    "{row}.price_e8, {row}.qty_e8, {row}.trade_id) END"
)
"""What identifies a trade in any session: the venue's id.

Some venues begin anew with their ids: the same id at another time or price is another trade.
"""


@dataclass(frozen=True)
class Plain:
    """A column that is taken as it is."""

    name: str
    source: str = ""
    texts: tuple[str, ...] = ()

    def value(self, *, rounded: bool) -> str:  # noqa: ARG002 - only figures are rounded
        """Return the SQL of the column."""
        return self.source or self.name

    def misfits(self, *, rounded: bool) -> list[str]:  # noqa: ARG002 - as above
        """Return the SQL of why there is no value: nothing to say."""
        return []


@dataclass(frozen=True)
class Figure:
    """A column that is a scaled integer; its name ends in its scale."""

    name: str
    text: str
    scale: Scale = E8
    required: bool = False
    computed: bool = False

    @property
    def texts(self) -> tuple[str, ...]:
        """The Bronze fields that `misfits` asks for, under the names `text_…`."""
        return (self.text,)

    def value(self, *, rounded: bool) -> str:
        """Return the SQL of the scaled integer, from Bronze fields."""
        return scaled(self.text, self.scale, rounded=rounded and self.computed)

    def misfits(self, *, rounded: bool) -> list[str]:
        """Return the SQL of why there is no such integer, from the value and the texts."""
        return [self.misfit(self.name, f"text_{self.text}", rounded=rounded)]

    def misfit(self, value: str, text: str, *, rounded: bool) -> str:
        """Return the same for a value and a text of any names."""
        return misfit(
            self.name.removesuffix(self.scale.suffix),
            value,
            text,
            self.scale,
            required=self.required,
            rounded=rounded and self.computed,
        )


@dataclass(frozen=True)
class Levels:
    """A column that is a list of price levels; only those that exist."""

    name: str
    computed: bool = False

    @property
    def texts(self) -> tuple[str, ...]:
        """As of a figure."""
        return (self.name,)

    def value(self, *, rounded: bool) -> str:
        """Return the SQL of the list."""
        figures = ", ".join(
            f"'{name}', {figure.value(rounded=rounded)}" for name, figure in self._figures().items()
        )
        there = f"filter({self.name}, level -> level.price_str IS NOT NULL)"
        return f"transform({there}, level -> named_struct({figures}))"

    def misfits(self, *, rounded: bool) -> list[str]:
        """Return the SQL of why the first bad level has no place in it."""
        there = f"filter(text_{self.name}, level -> level.price_str IS NOT NULL)"
        reasons = ", ".join(
            figure.misfit(f"value.{name}", figure.text, rounded=rounded)
            for name, figure in self._figures().items()
        )
        each = f"zip_with({self.name}, {there}, (value, level) -> coalesce({reasons}))"
        is_bad = f"exists({self.name}, value -> value.price_e8 IS NULL OR value.qty_e8 IS NULL)"
        return [f"CASE WHEN {is_bad} THEN get(filter({each}, why -> why IS NOT NULL), 0) END"]

    def _figures(self) -> dict[str, Figure]:
        stem = self.name.removesuffix("s")
        return {
            "price_e8": Figure(f"{stem} price_e8", "level.price_str", required=True),
            "qty_e8": Figure(
                f"{stem} qty_e8", "level.qty_str", required=True, computed=self.computed
            ),
        }


Field: TypeAlias = Plain | Figure | Levels


@dataclass(frozen=True)
class Record:
    """A Silver table."""

    fields: tuple[Field, ...]
    identities: tuple[str, ...] = (BY_POSITION,)
    """SQL of what identifies a row, `{row}.column`; the first that is not NULL does."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns, but for the date."""
        return (*LINEAGE, *(field.name for field in self.fields))

    @property
    def identity(self) -> str:
        """SQL of what identifies a row.

        Without a position in a session nothing but its whole content tells an event from another.
        """
        content = ", ".join(f"{{row}}.{column}" for column in self.columns)
        return f"coalesce({', '.join(self.identities)}, to_json(struct({content})))"


_TRADE = (
    Figure("price_e8", "price_str", required=True),
    Figure("qty_e8", "qty_str", required=True),
    Plain("side"),
)
_SNAPSHOT = (
    Plain("name"),
    Plain("depth"),
    Plain("interval_ms", "interval"),
)

RECORDS = {
    "trade": Record(
        (Plain("trade_id"), *_TRADE),
        (BY_TRADE_ID, BY_POSITION),
    ),
    "bookChange": Record(
        (
            Plain("side"),
            Plain("action"),
            Figure("price_e8", "price_str"),
            Figure("qty_e8", "qty_str"),
            Plain("is_snapshot"),
            Plain("part"),
            Plain("parts"),
        ),
        (BY_POSITION.replace("'seq:'", "'seq:', {row}.part, ':'"),),
    ),
    "bookSnapshot": Record((*_SNAPSHOT, Levels("bids"), Levels("asks"))),
    "quote": Record(
        (
            Plain("name"),
            Plain("interval_ms", "interval"),
            Figure("bid_price_e8", "bid_price_str"),
            Figure("bid_qty_e8", "bid_qty_str"),
            Figure("ask_price_e8", "ask_price_str"),
            Figure("ask_qty_e8", "ask_qty_str"),
        )
    ),
    "derivativeTicker": Record(
        (
            Figure("last_price_e8", "last_price_str"),
            Figure("mark_price_e8", "mark_price_str"),
            Figure("index_price_e8", "index_price_str"),
            Figure("open_interest_e8", "open_interest_str"),
            Figure("funding_rate_e9", "funding_rate_str", E9),
            Figure("predicted_funding_rate_e9", "predicted_funding_rate_str", E9),
            Plain("funding_ts"),
        )
    ),
    "liquidation": Record((Plain("order_id"), *_TRADE)),
    "optionSummary": Record(
        (
            Plain("option_type"),
            Figure("strike_price_e8", "strike_price_str"),
            Plain("expiration_ts"),
            Figure("best_bid_price_e8", "best_bid_price_str"),
            Figure("best_bid_qty_e8", "best_bid_qty_str"),
            Figure("best_bid_iv_e6", "best_bid_iv_str", E6, computed=True),
            Figure("best_ask_price_e8", "best_ask_price_str"),
            Figure("best_ask_qty_e8", "best_ask_qty_str"),
            Figure("best_ask_iv_e6", "best_ask_iv_str", E6, computed=True),
            Figure("last_price_e8", "last_price_str"),
            Figure("mark_price_e8", "mark_price_str", computed=True),
            Figure("mark_iv_e6", "iv_str", E6, computed=True),
            Figure("open_interest_e8", "oi_str"),
            Figure("delta_e9", "delta_str", E9, computed=True),
            Figure("gamma_e9", "gamma_str", E9, computed=True),
            Figure("theta_e9", "theta_str", E9, computed=True),
            Figure("vega_e9", "vega_str", E9, computed=True),
            Figure("rho_e9", "rho_str", E9, computed=True),
            Figure("underlying_price_e8", "underlying_price_str", computed=True),
            Plain("underlying_index"),
        )
    ),
    "bookTicker": Record(
        (
            Figure("bid_price_e8", "best_bid_price_str"),
            Figure("bid_qty_e8", "best_bid_qty_str"),
            Figure("ask_price_e8", "best_ask_price_str"),
            Figure("ask_qty_e8", "best_ask_qty_str"),
        )
    ),
    "groupedBookSnapshot": Record(
        (
            *_SNAPSHOT,
            Figure("grouping_e8", "grouping_str", required=True),
            Levels("bids", computed=True),
            Levels("asks", computed=True),
        )
    ),
    "tradeBar": Record(
        (
            Plain("name"),
            Plain("kind"),
            Plain("interval"),
            Figure("open_e8", "open_str", required=True),
            Figure("high_e8", "high_str", required=True),
            Figure("low_e8", "low_str", required=True),
            Figure("close_e8", "close_str", required=True),
            Figure("volume_e8", "volume_str", required=True, computed=True),
            Figure("buy_volume_e8", "buy_volume_str", required=True, computed=True),
            Figure("sell_volume_e8", "sell_volume_str", required=True, computed=True),
            Figure("vwap_e8", "vwap_str", computed=True),
            Plain("trade_count"),
            Plain("start_ts", "event_ts"),
            Plain("open_ts"),
            Plain("close_ts"),
        )
    ),
    "error": Record((Plain("details"), Plain("subsequent_errors"), Plain("code"))),
    "disconnect": Record((Plain("reason"), Plain("close_code"), Plain("symbols"))),
}
"""By payload case."""
