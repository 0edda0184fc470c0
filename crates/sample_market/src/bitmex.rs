//! `BitMEX`: tables with actions; a level of a book has an id, and a price only when it is new.

use crate::book::{Change, Row};
use crate::clock::Clock;
use crate::decimal::scaled_up;
use crate::lines::Lines;
use crate::market::Market;
use crate::minute::{Event, Venue};
use crate::random::Random;
use crate::text::{Float, Id, Part, Sent, Short, put};

const CHANNELS: &[&str] = &["trade", "orderBookL2", "instrument", "quote", "liquidation"];
const TRADE: usize = 0;
const BOOK: usize = 1;
const INSTRUMENT: usize = 2;
const QUOTE: usize = 3;
const LIQUIDATION: usize = 4;

/// Since 2022 levels have timestamps.
const MINUTE_OF_LEVEL_TIMES: i64 = 18_993 * 24 * 60;

pub(crate) struct Bitmex;

/// A price of a cell.
struct Price<'a, 'b>(&'a Market<'b>, i64);

impl Part for Price<'_, '_> {
    fn put(self, out: &mut Vec<u8>) {
        let instrument = self.0.instrument;
        put!(out, Short(instrument.price_of(self.1), instrument.price_decimals));
    }
}

/// A price between ticks.
struct FairPrice<'a, 'b>(&'a Market<'b>, f64);

impl Part for FairPrice<'_, '_> {
    fn put(self, out: &mut Vec<u8>) {
        let decimals = self.0.instrument.price_decimals + 1;
        put!(out, Short(scaled_up(self.1, decimals), decimals));
    }
}

/// A moment that is a whole number of minutes, in milliseconds since 1970.
struct Moment(i64);

impl Part for Moment {
    fn put(self, out: &mut Vec<u8>) {
        market_data::Timestamp::from_millis(self.0).write(out);
    }
}

fn side(is_bid: bool) -> &'static str {
    if is_bid { "Buy" } else { "Sell" }
}

impl Venue for Bitmex {
    fn channels(&self) -> &'static [&'static str] {
        CHANNELS
    }

    fn mix(&self) -> &'static [(Event, u32)] {
        &[
            (Event::Book, 700),
            (Event::Trade, 170),
            (Event::Quote, 65),
            (Event::Ticker, 60),
            (Event::Liquidation, 5),
        ]
    }

    fn usual_rows(&self) -> u32 {
        2
    }

    fn snapshot(&self, market: &Market<'_>, lines: &mut Lines<'_>) {
        lines.write(BOOK, market.index, |out, clock| write_partial_book(market, out, clock));
        lines.write(INSTRUMENT, market.index, |out, clock| {
            write_partial_instrument(market, out, clock);
        });
    }

    fn book(&self, market: &Market<'_>, rows: &[Row], lines: &mut Lines<'_>) {
        let actions =
            [(Change::Delete, "delete"), (Change::Insert, "insert"), (Change::Update, "update")];
        for (change, action) in actions {
            if rows.iter().any(|row| row.change == change) {
                lines.write(BOOK, market.index, |out, clock| {
                    put!(out, r#"{"table":"orderBookL2","action":""#, action, r#"","data":["#);
                    let rows = rows.iter().filter(|row| row.change == change);
                    write_levels(market, rows.copied(), out, clock);
                    put!(out, "]}");
                });
            }
        }
    }

    fn event(
        &self,
        event: Event,
        market: &mut Market<'_>,
        random: &mut Random,
        lines: &mut Lines<'_>,
    ) {
        match event {
            Event::Trade => write_trades(market, random, lines),
            Event::Quote => write_quote(market, lines),
            Event::Liquidation => write_liquidation(market, random, lines),
            _ => lines.write(INSTRUMENT, market.index, |out, clock| {
                write_instrument(market, random, out, clock);
            }),
        }
    }
}

fn write_levels(
    market: &Market<'_>,
    rows: impl Iterator<Item = Row>,
    out: &mut Vec<u8>,
    clock: &Clock,
) {
    let instrument = market.instrument;
    let first_id = (88 + 2 * u64::try_from(market.index).unwrap_or(0)) * 100_000_000;
    for (place, row) in rows.enumerate() {
        let id = first_id - instrument.ticks_of(row.cell);
        put!(
            out,
            if place == 0 { r#"{"symbol":""# } else { r#",{"symbol":""# },
            &*instrument.symbol,
            r#"","id":"#,
            id,
            r#","side":""#,
            side(row.is_bid),
            "\"",
        );
        if row.change != Change::Delete {
            put!(out, r#","size":"#, row.size);
        }
        if row.change == Change::Insert {
            put!(out, r#","price":"#, Price(market, row.cell));
        }
        if clock.minute >= MINUTE_OF_LEVEL_TIMES {
            put!(out, r#","timestamp":""#, Sent(clock), "\"");
        }
        put!(out, "}");
    }
}

fn write_partial_book(market: &Market<'_>, out: &mut Vec<u8>, clock: &Clock) {
    let (types, attributes) = if clock.minute >= MINUTE_OF_LEVEL_TIMES {
        (r#","timestamp":"timestamp""#, r#""symbol":"grouped""#)
    } else {
        ("", r#""symbol":"parted","id":"sorted""#)
    };
    put!(
        out,
        r#"{"table":"orderBookL2","action":"partial","keys":["symbol","id","side"],"#,
        r#""types":{"symbol":"symbol","id":"long","side":"symbol","size":"long","price":"float""#,
        types,
        r#"},"foreignKeys":{"symbol":"instrument","side":"side"},"attributes":{"#,
        attributes,
        r#"},"filter":{"symbol":""#,
        &*market.instrument.symbol,
        r#""},"data":["#,
    );
    let level = |is_bid| move |(cell, size)| Row { is_bid, change: Change::Insert, cell, size };
    let asks = market.book.asks().rev().map(level(false));
    write_levels(market, asks.chain(market.book.bids().map(level(true))), out, clock);
    put!(out, "]}");
}

fn write_partial_instrument(market: &Market<'_>, out: &mut Vec<u8>, clock: &Clock) {
    let instrument = market.instrument;
    let symbol = &*instrument.symbol;
    let price = market.price(clock);
    let (funding, expected_funding) = market.funding(clock);
    let open_interest = market.open_interest(clock);
    put!(
        out,
        r#"{"table":"instrument","action":"partial","keys":["symbol"],"filter":{"symbol":""#,
        symbol,
        r#""},"data":[{"symbol":""#,
        symbol,
        r#"","rootSymbol":""#,
        symbol.trim_end_matches("USD"),
        r#"","state":"Open","typ":"FFWCSX","lotSize":"#,
        instrument.lot,
        r#","tickSize":"#,
        Short(instrument.tick.unsigned_abs(), instrument.price_decimals),
        r#","makerFee":-0.00025,"takerFee":0.00075,"fundingTimestamp":""#,
        Moment(clock.next_funding_millis()),
        r#"","fundingInterval":"2000-01-01T08:00:00.000Z","fundingRate":"#,
        Float(funding, 6),
        r#","indicativeFundingRate":"#,
        Float(expected_funding, 6),
        r#","prevClosePrice":"#,
        FairPrice(market, market.day.open),
        r#","limitDownPrice":null,"volume24h":"#,
        open_interest * 3,
        r#","vwap":"#,
        FairPrice(market, f64::midpoint(market.day.high, market.day.low)),
        r#","highPrice":"#,
        FairPrice(market, market.day.high),
        r#","lowPrice":"#,
        FairPrice(market, market.day.low),
        r#","lastPrice":"#,
        Price(market, market.last_cell),
        r#","lastTickDirection":"PlusTick","bidPrice":"#,
        Price(market, market.book.middle),
        r#","askPrice":"#,
        Price(market, market.book.middle + 1),
        r#","openInterest":"#,
        open_interest,
        r#","fairMethod":"FundingRate","markMethod":"FairPrice","markPrice":"#,
        FairPrice(market, price),
        r#","indicativeSettlePrice":"#,
        FairPrice(market, price * 0.9998),
        r#","settledPrice":null,"timestamp":""#,
        Sent(clock),
        r#""}]}"#,
    );
}

fn write_instrument(market: &Market<'_>, random: &mut Random, out: &mut Vec<u8>, clock: &Clock) {
    put!(
        out,
        r#"{"table":"instrument","action":"update","data":[{"symbol":""#,
        &*market.instrument.symbol,
        "\"",
    );
    let price = market.price(clock);
    match random.below(10) {
        0..4 => {
            let open_interest = market.open_interest(clock);
            let value = open_interest * 10_700;
            put!(out, r#","openInterest":"#, open_interest, r#","openValue":"#, value);
        }
        4..7 => put!(
            out,
            r#","fairPrice":"#,
            FairPrice(market, price),
            r#","markPrice":"#,
            FairPrice(market, price),
            r#","indicativeSettlePrice":"#,
            FairPrice(market, price * 0.9998),
        ),
        7 => put!(out, r#","indicativeFundingRate":"#, Float(market.funding(clock).1, 6)),
        _ => put!(
            out,
            r#","lastPrice":"#,
            Price(market, market.last_cell),
            r#","lastTickDirection":"ZeroMinusTick","bidPrice":"#,
            Price(market, market.book.middle),
            r#","midPrice":"#,
            FairPrice(market, price),
        ),
    }
    put!(out, r#","timestamp":""#, Sent(clock), r#""}]}"#);
}

fn write_trades(market: &mut Market<'_>, random: &mut Random, lines: &mut Lines<'_>) {
    let deal = market.deal(random);
    let market = &*market;
    let instrument = market.instrument;
    let price = instrument.price_number(deal.cell);
    lines.write(TRADE, market.index, |out, clock| {
        put!(out, r#"{"table":"trade","action":"insert","data":["#);
        for place in 0..=random.halvings(5) {
            let size = market.draw_size(random);
            let home = scaled_up(f64::from(size) / price, 8);
            put!(
                out,
                if place == 0 { r#"{"timestamp":""# } else { r#",{"timestamp":""# },
                Sent(clock),
                r#"","symbol":""#,
                &*instrument.symbol,
                r#"","side":""#,
                side(deal.is_buy),
                r#"","size":"#,
                size,
                r#","price":"#,
                Price(market, deal.cell),
                r#","tickDirection":""#,
                if deal.is_buy { "ZeroPlusTick" } else { "ZeroMinusTick" },
                r#"","trdMatchID":""#,
                Id(random.next(), random.next()),
                r#"","grossValue":"#,
                home,
                r#","homeNotional":"#,
                Short(home, 8),
                r#","foreignNotional":"#,
                size,
                "}",
            );
        }
        put!(out, "]}");
    });
}

fn write_quote(market: &Market<'_>, lines: &mut Lines<'_>) {
    let (bid, ask) = (market.book.middle, market.book.middle + 1);
    lines.write(QUOTE, market.index, |out, clock| {
        put!(
            out,
            r#"{"table":"quote","action":"insert","data":[{"timestamp":""#,
            Sent(clock),
            r#"","symbol":""#,
            &*market.instrument.symbol,
            r#"","bidSize":"#,
            market.book.size(bid),
            r#","bidPrice":"#,
            Price(market, bid),
            r#","askPrice":"#,
            Price(market, ask),
            r#","askSize":"#,
            market.book.size(ask),
            "}]}",
        );
    });
}

/// An order to liquidate is entered and, once it was filled, deleted.
fn write_liquidation(market: &mut Market<'_>, random: &mut Random, lines: &mut Lines<'_>) {
    let deal = market.deal(random);
    let market = &*market;
    let symbol = &*market.instrument.symbol;
    let (high, low, size) = (random.next(), random.next(), market.draw_size(random));
    lines.write(LIQUIDATION, market.index, |out, _| {
        put!(
            out,
            r#"{"table":"liquidation","action":"insert","data":[{"orderID":""#,
            Id(high, low),
            r#"","symbol":""#,
            symbol,
            r#"","side":""#,
            side(deal.is_buy),
            r#"","price":"#,
            Price(market, deal.cell),
            r#","leavesQty":"#,
            size,
            "}]}",
        );
    });
    lines.write(LIQUIDATION, market.index, |out, _| {
        put!(
            out,
            r#"{"table":"liquidation","action":"delete","data":[{"orderID":""#,
            Id(high, low),
            r#"","symbol":""#,
            symbol,
            r#""}]}"#,
        );
    });
}
