//! Binance's futures: streams named by symbol and channel; numbers are text with all decimals.

use crate::book::Row;
use crate::clock::Clock;
use crate::decimal::{scaled, scaled_up};
use crate::lines::Lines;
use crate::market::Market;
use crate::minute::{Event, Venue};
use crate::random::Random;
use crate::text::{Fixed, Part, put};

const CHANNELS: &[&str] = &[
    "trade",
    "depth",
    "depthSnapshot",
    "bookTicker",
    "markPrice",
    "ticker",
    "openInterest",
    "forceOrder",
];
const TRADE: usize = 0;
const DEPTH: usize = 1;
const DEPTH_SNAPSHOT: usize = 2;
const BOOK_TICKER: usize = 3;
const MARK_PRICE: usize = 4;
const TICKER: usize = 5;
const OPEN_INTEREST: usize = 6;
const FORCE_ORDER: usize = 7;

/// From the trade to the message about it.
const DELAY_MILLIS: i64 = 3;
const DAY_MILLIS: i64 = 86_400_000;

pub(crate) struct BinanceFutures;

/// A price of a cell.
struct Price<'a, 'b>(&'a Market<'b>, i64);

impl Part for Price<'_, '_> {
    fn put(self, out: &mut Vec<u8>) {
        let instrument = self.0.instrument;
        put!(out, Fixed(instrument.price_of(self.1), instrument.price_decimals));
    }
}

/// A price that need not be one of a cell.
struct FreePrice<'a, 'b>(&'a Market<'b>, f64);

impl Part for FreePrice<'_, '_> {
    fn put(self, out: &mut Vec<u8>) {
        let decimals = self.0.instrument.price_decimals;
        put!(out, Fixed(scaled_up(self.1, decimals), decimals));
    }
}

/// A size.
struct Size<'a, 'b>(&'a Market<'b>, u64);

impl Part for Size<'_, '_> {
    fn put(self, out: &mut Vec<u8>) {
        put!(out, Fixed(self.1, self.0.instrument.size_decimals));
    }
}

impl Venue for BinanceFutures {
    fn channels(&self) -> &'static [&'static str] {
        CHANNELS
    }

    fn mix(&self) -> &'static [(Event, u32)] {
        &[
            (Event::Book, 380),
            (Event::Quote, 330),
            (Event::Trade, 249),
            (Event::MarkPrice, 20),
            (Event::Ticker, 15),
            (Event::OpenInterest, 4),
            (Event::Liquidation, 2),
        ]
    }

    fn usual_rows(&self) -> u32 {
        10
    }

    fn sends_changes_before_snapshot(&self) -> bool {
        true
    }

    fn snapshot(&self, market: &Market<'_>, lines: &mut Lines<'_>) {
        lines.write(DEPTH_SNAPSHOT, market.index, |out, clock| {
            put!(
                out,
                r#"{"stream":""#,
                &*market.instrument.stream,
                r#"@depthSnapshot","generated":true,"data":{"lastUpdateId":"#,
                market.sequence,
                r#","E":"#,
                clock.local_millis(),
                r#","T":"#,
                clock.local_millis() - DELAY_MILLIS,
                r#","bids":["#,
            );
            write_levels(market, market.book.bids(), out);
            put!(out, r#"],"asks":["#);
            write_levels(market, market.book.asks(), out);
            put!(out, "]}}");
        });
    }

    fn fetched_channels(&self) -> &'static [&'static str] {
        &["depthSnapshot", "openInterest"]
    }

    fn polled(&self, market: &Market<'_>, lines: &mut Lines<'_>) {
        write_open_interest(market, lines);
    }

    fn book(&self, market: &Market<'_>, rows: &[Row], lines: &mut Lines<'_>) {
        let side = |is_bid| {
            rows.iter().filter(move |row| row.is_bid == is_bid).map(|row| (row.cell, row.size))
        };
        lines.write(DEPTH, market.index, |out, clock| {
            open(market, "@depth@100ms", "depthUpdate", out, clock);
            put!(out, r#","T":"#, clock.sent_millis() - DELAY_MILLIS);
            put_symbol(market, out);
            put!(
                out,
                r#","U":"#,
                market.sequence_before + 1,
                r#","u":"#,
                market.sequence,
                r#","pu":"#,
                market.sequence_before,
                r#","b":["#,
            );
            write_levels(market, side(true), out);
            put!(out, r#"],"a":["#);
            write_levels(market, side(false), out);
            put!(out, "]}}");
        });
    }

    fn event(
        &self,
        event: Event,
        market: &mut Market<'_>,
        random: &mut Random,
        lines: &mut Lines<'_>,
    ) {
        match event {
            Event::Trade => write_trade(market, random, lines),
            Event::Quote => write_book_ticker(market, lines),
            Event::MarkPrice => write_mark_price(market, lines),
            Event::OpenInterest => write_open_interest(market, lines),
            Event::Liquidation => write_force_order(market, random, lines),
            _ => write_ticker(market, random, lines),
        }
    }
}

/// `{"stream":"…","data":{"e":"…","E":…`
fn open(market: &Market<'_>, channel: &str, event: &str, out: &mut Vec<u8>, clock: &Clock) {
    put!(
        out,
        r#"{"stream":""#,
        &*market.instrument.stream,
        channel,
        r#"","data":{"e":""#,
        event,
        r#"","E":"#,
        clock.sent_millis(),
    );
}

fn put_symbol(market: &Market<'_>, out: &mut Vec<u8>) {
    put!(out, r#","s":""#, &*market.instrument.symbol, "\"");
}

fn write_levels(market: &Market<'_>, levels: impl Iterator<Item = (i64, u32)>, out: &mut Vec<u8>) {
    for (place, (cell, size)) in levels.enumerate() {
        put!(
            out,
            if place == 0 { r#"[""# } else { r#",[""# },
            Price(market, cell),
            r#"",""#,
            Size(market, u64::from(size)),
            r#""]"#,
        );
    }
}

fn write_trade(market: &mut Market<'_>, random: &mut Random, lines: &mut Lines<'_>) {
    let deal = market.deal(random);
    let id = market.next_trade_id();
    let market = &*market;
    lines.write(TRADE, market.index, |out, clock| {
        open(market, "@trade", "trade", out, clock);
        put!(out, r#","T":"#, clock.sent_millis() - DELAY_MILLIS);
        put_symbol(market, out);
        put!(
            out,
            r#","t":"#,
            id,
            r#","p":""#,
            Price(market, deal.cell),
            r#"","q":""#,
            Size(market, u64::from(market.draw_size(random))),
            if random.once_in(500) { r#"","X":"INSURANCE_FUND""# } else { r#"","X":"MARKET""# },
            if deal.is_buy { r#","m":false}}"# } else { r#","m":true}}"# },
        );
    });
}

fn write_book_ticker(market: &Market<'_>, lines: &mut Lines<'_>) {
    let (bid, ask) = (market.book.middle, market.book.middle + 1);
    lines.write(BOOK_TICKER, market.index, |out, clock| {
        put!(
            out,
            r#"{"stream":""#,
            &*market.instrument.stream,
            r#"@bookTicker","data":{"e":"bookTicker","u":"#,
            market.sequence,
        );
        put_symbol(market, out);
        put!(
            out,
            r#","b":""#,
            Price(market, bid),
            r#"","B":""#,
            Size(market, u64::from(market.book.size(bid))),
            r#"","a":""#,
            Price(market, ask),
            r#"","A":""#,
            Size(market, u64::from(market.book.size(ask))),
            r#"","T":"#,
            clock.sent_millis() - DELAY_MILLIS,
            r#","E":"#,
            clock.sent_millis(),
            "}}",
        );
    });
}

fn write_mark_price(market: &Market<'_>, lines: &mut Lines<'_>) {
    lines.write(MARK_PRICE, market.index, |out, clock| {
        let price = market.price(clock);
        let free = |factor: f64| Fixed(scaled_up(price * factor, 8), 8);
        open(market, "@markPrice@1s", "markPriceUpdate", out, clock);
        put_symbol(market, out);
        put!(
            out,
            r#","p":""#,
            free(1.0),
            r#"","P":""#,
            free(1.0001),
            r#"","i":""#,
            free(0.9998),
            r#"","r":""#,
            Fixed(market.funding(clock).0 * 100, 8),
            r#"","T":"#,
            clock.next_funding_millis(),
            "}}",
        );
    });
}

fn write_ticker(market: &Market<'_>, random: &mut Random, lines: &mut Lines<'_>) {
    lines.write(TICKER, market.index, |out, clock| {
        let decimals = market.instrument.price_decimals;
        let price = market.price(clock);
        let day = market.day;
        let volume = market.open_interest(clock) * 3;
        let trades = volume / u64::from(market.instrument.lot.max(1)) / 100;
        let turnover = market.instrument.size_number(1) * price;
        open(market, "@ticker", "24hrTicker", out, clock);
        put_symbol(market, out);
        put!(
            out,
            r#","p":""#,
            Fixed(scaled(price - day.open, decimals), decimals),
            r#"","P":""#,
            Fixed(scaled((price / day.open - 1.0) * 100.0, 3), 3),
            r#"","w":""#,
            FreePrice(market, f64::midpoint(day.high, day.low)),
            r#"","c":""#,
            Price(market, market.last_cell),
            r#"","Q":""#,
            Size(market, u64::from(market.draw_size(random))),
            r#"","o":""#,
            FreePrice(market, day.open),
            r#"","h":""#,
            FreePrice(market, day.high),
            r#"","l":""#,
            FreePrice(market, day.low),
            r#"","v":""#,
            Size(market, volume),
            r#"","q":""#,
            Fixed(volume.saturating_mul(scaled_up(turnover, 4)), 4),
            r#"","O":"#,
            clock.sent_millis() - DAY_MILLIS,
            r#","C":"#,
            clock.sent_millis(),
            r#","F":"#,
            market.last_trade_id.saturating_sub(trades),
            r#","L":"#,
            market.last_trade_id,
            r#","n":"#,
            trades,
            "}}",
        );
    });
}

fn write_open_interest(market: &Market<'_>, lines: &mut Lines<'_>) {
    lines.write(OPEN_INTEREST, market.index, |out, clock| {
        put!(
            out,
            r#"{"stream":""#,
            &*market.instrument.stream,
            r#"@openInterest","generated":true,"data":{"symbol":""#,
            &*market.instrument.symbol,
            r#"","openInterest":""#,
            Size(market, market.open_interest(clock)),
            r#""}}"#,
        );
    });
}

fn write_force_order(market: &mut Market<'_>, random: &mut Random, lines: &mut Lines<'_>) {
    let deal = market.deal(random);
    let market = &*market;
    let size = u64::from(market.draw_size(random));
    // The order's limit is worse than the price it was filled at.
    let limit = if deal.is_buy { deal.cell + 20 } else { (deal.cell - 20).max(1) };
    lines.write(FORCE_ORDER, market.index, |out, clock| {
        open(market, "@forceOrder", "forceOrder", out, clock);
        put!(
            out,
            r#","o":{"s":""#,
            &*market.instrument.symbol,
            if deal.is_buy { r#"","S":"BUY""# } else { r#"","S":"SELL""# },
            r#","o":"LIMIT","f":"IOC","q":""#,
            Size(market, size),
            r#"","p":""#,
            Price(market, limit),
            r#"","ap":""#,
            Price(market, deal.cell),
            r#"","X":"FILLED","l":""#,
            Size(market, size),
            r#"","z":""#,
            Size(market, size),
            r#"","T":"#,
            clock.sent_millis() - DELAY_MILLIS,
            "}}}",
        );
    });
}
