//! Deribit: subscriptions by channel and instrument, perpetuals and options.

use crate::book::{Change, Row};
use crate::clock::Clock;
use crate::decimal::{scaled, scaled_up};
use crate::lines::Lines;
use crate::market::Market;
use crate::minute::{Event, Venue};
use crate::option_terms::{OptionTerms, OptionValue};
use crate::random::Random;
use crate::text::{Float, Part, put};

const CHANNELS: &[&str] = &["trades", "book", "ticker"];
const TRADES: usize = 0;
const BOOK: usize = 1;
const TICKER: usize = 2;

/// One trade in so many is a liquidation.
const LIQUIDATION_ONCE_IN: u32 = 100;

pub(crate) struct Deribit;

/// A price of a cell.
struct Price<'a, 'b>(&'a Market<'b>, i64);

impl Part for Price<'_, '_> {
    fn put(self, out: &mut Vec<u8>) {
        let instrument = self.0.instrument;
        put!(out, Float(instrument.price_of(self.1), instrument.price_decimals));
    }
}

/// A number with some decimals at most.
struct Rounded(f64, usize);

impl Part for Rounded {
    fn put(self, out: &mut Vec<u8>) {
        put!(out, Float(scaled(self.0, self.1), self.1));
    }
}

/// A size.
struct Size<'a, 'b>(&'a Market<'b>, u64);

impl Part for Size<'_, '_> {
    fn put(self, out: &mut Vec<u8>) {
        put!(out, Float(self.1, self.0.instrument.size_decimals));
    }
}

impl Venue for Deribit {
    fn channels(&self) -> &'static [&'static str] {
        CHANNELS
    }

    fn mix(&self) -> &'static [(Event, u32)] {
        &[(Event::Book, 660), (Event::Ticker, 200), (Event::Trade, 140)]
    }

    fn usual_rows(&self) -> u32 {
        2
    }

    fn snapshot(&self, market: &Market<'_>, lines: &mut Lines<'_>) {
        let level = |is_bid| move |(cell, size)| Row { is_bid, change: Change::Insert, cell, size };
        lines.write(BOOK, market.index, |out, clock| {
            open(market, "book", out);
            put!(
                out,
                r#"{"type":"snapshot","timestamp":"#,
                clock.sent_millis(),
                r#","instrument_name":""#,
                &*market.instrument.symbol,
                r#"","change_id":"#,
                market.sequence,
                r#","bids":["#,
            );
            write_levels(market, market.book.bids().map(level(true)), out);
            put!(out, r#"],"asks":["#);
            write_levels(market, market.book.asks().map(level(false)), out);
            put!(out, "]}}}");
        });
    }

    fn book(&self, market: &Market<'_>, rows: &[Row], lines: &mut Lines<'_>) {
        let side = |is_bid| rows.iter().filter(move |row| row.is_bid == is_bid).copied();
        lines.write(BOOK, market.index, |out, clock| {
            open(market, "book", out);
            put!(
                out,
                r#"{"type":"change","timestamp":"#,
                clock.sent_millis(),
                r#","prev_change_id":"#,
                market.sequence_before,
                r#","instrument_name":""#,
                &*market.instrument.symbol,
                r#"","change_id":"#,
                market.sequence,
                r#","bids":["#,
            );
            write_levels(market, side(true), out);
            put!(out, r#"],"asks":["#);
            write_levels(market, side(false), out);
            put!(out, "]}}}");
        });
    }

    fn event(
        &self,
        event: Event,
        market: &mut Market<'_>,
        random: &mut Random,
        lines: &mut Lines<'_>,
    ) {
        if event == Event::Trade {
            return write_trades(market, random, lines);
        }
        let market = &*market;
        lines.write(TICKER, market.index, |out, clock| {
            open(market, "ticker", out);
            match (&market.instrument.option, market.option_value(clock)) {
                (Some(terms), Some(value)) => {
                    write_option(market, (terms, &value), random, out, clock);
                }
                _ => write_perpetual(market, out, clock),
            }
            put!(out, "}}}");
        });
    }
}

/// `{"jsonrpc":…,"params":{"channel":"…","data":`
fn open(market: &Market<'_>, channel: &str, out: &mut Vec<u8>) {
    put!(
        out,
        r#"{"jsonrpc":"2.0","method":"subscription","params":{"channel":""#,
        channel,
        ".",
        &*market.instrument.symbol,
        r#".raw","data":"#,
    );
}

fn write_levels(market: &Market<'_>, rows: impl Iterator<Item = Row>, out: &mut Vec<u8>) {
    for (place, row) in rows.enumerate() {
        if place > 0 {
            put!(out, ",");
        }
        let change = match row.change {
            Change::Delete => r#"["delete","#,
            Change::Insert => r#"["new","#,
            Change::Update => r#"["change","#,
        };
        let size = Size(market, u64::from(row.size));
        put!(out, change, Price(market, row.cell), ",", size, "]");
    }
}

fn write_trades(market: &mut Market<'_>, random: &mut Random, lines: &mut Lines<'_>) {
    let deal = market.deal(random);
    let count = random.halvings(4) + 1;
    let first_id = market.next_trade_id();
    market.last_trade_id += u64::from(count - 1);
    let market = &*market;
    lines.write(TRADES, market.index, |out, clock| {
        open(market, "trades", out);
        for number in 0..count {
            let id = first_id + u64::from(number);
            let liquidation = match random.below(LIQUIDATION_ONCE_IN * 3) {
                0 => r#","liquidation":"M""#,
                1 => r#","liquidation":"T""#,
                2 => r#","liquidation":"MT""#,
                _ => "",
            };
            put!(
                out,
                if number == 0 { r#"[{"trade_seq":"# } else { r#",{"trade_seq":"# },
                id,
                r#","trade_id":""#,
                id,
                r#"","timestamp":"#,
                clock.sent_millis(),
                r#","tick_direction":"#,
                random.below(4),
                r#","price":"#,
                Price(market, deal.cell),
                liquidation,
                r#","instrument_name":""#,
                &*market.instrument.symbol,
                r#"","index_price":"#,
                Rounded(market.underlying(clock) * 0.9998, 2),
                if deal.is_buy {
                    r#","direction":"buy","amount":"#
                } else {
                    r#","direction":"sell","amount":"#
                },
                Size(market, u64::from(market.draw_size(random))),
                "}",
            );
        }
        put!(out, "]}}");
    });
}

fn write_perpetual(market: &Market<'_>, out: &mut Vec<u8>, clock: &Clock) {
    let price = market.price(clock);
    let day = market.day;
    let (funding, current) = market.funding(clock);
    put!(
        out,
        r#"{"timestamp":"#,
        clock.sent_millis(),
        r#","stats":{"volume":"#,
        Float(market.open_interest(clock) * 3, 3),
        r#","low":"#,
        Rounded(day.low, 2),
        r#","high":"#,
        Rounded(day.high, 2),
        r#"},"state":"open","settlement_price":"#,
        Rounded(day.open, 2),
        r#","open_interest":"#,
        Size(market, market.open_interest(clock)),
        r#","min_price":"#,
        Rounded(price * 0.985, 2),
        r#","max_price":"#,
        Rounded(price * 1.015, 2),
        r#","mark_price":"#,
        Rounded(price, 2),
        r#","last_price":"#,
        Price(market, market.last_cell),
        r#","instrument_name":""#,
        &*market.instrument.symbol,
        r#"","index_price":"#,
        Rounded(price * 0.9998, 2),
        r#","funding_8h":"#,
        Float(funding, 6),
        r#","current_funding":"#,
        Float(current.max(0), 6),
    );
    write_best(market, out);
}

fn write_option(
    market: &Market<'_>,
    (terms, value): (&OptionTerms, &OptionValue),
    random: &mut Random,
    out: &mut Vec<u8>,
    clock: &Clock,
) {
    let underlying = market.underlying(clock);
    let day = market.day;
    put!(
        out,
        r#"{"underlying_price":"#,
        Rounded(underlying, 2),
        r#","underlying_index":""#,
        &*terms.underlying,
        r#"","timestamp":"#,
        clock.sent_millis(),
        r#","stats":{"volume":"#,
        Float(market.open_interest(clock) / 100, 1),
        r#","price_change":"#,
        Rounded((value.premium / day.open.max(0.000_1) - 1.0) * 100.0, 4),
        r#","low":"#,
        Rounded(day.low, 4),
        r#","high":"#,
        Rounded(day.high, 4),
        r#"},"state":"open","settlement_price":"#,
        Rounded(day.open, 8),
        r#","open_interest":"#,
        Size(market, market.open_interest(clock) / 100),
        r#","min_price":"#,
        Float(scaled_up((value.premium - 0.03).max(0.000_1), 4), 4),
        r#","max_price":"#,
        Rounded(value.premium + 0.03, 4),
        r#","mark_price":"#,
        Rounded(value.premium, 8),
        r#","mark_iv":"#,
        Rounded(value.volatility * 100.0, 2),
        r#","last_price":"#,
    );
    if random.once_in(50) {
        put!(out, "null");
    } else {
        put!(out, Price(market, market.last_cell));
    }
    put!(
        out,
        r#","interest_rate":0.0,"instrument_name":""#,
        &*market.instrument.symbol,
        r#"","index_price":"#,
        Rounded(underlying * 0.9998, 2),
        r#","greeks":{"vega":"#,
        Rounded(value.vega, 5),
        r#","theta":"#,
        Rounded(value.theta, 5),
        r#","rho":"#,
        Rounded(value.rho, 5),
        r#","gamma":"#,
        Rounded(value.gamma, 5),
        r#","delta":"#,
        Rounded(value.delta, 5),
        r#"},"estimated_delivery_price":"#,
        Rounded(underlying * 0.9998, 2),
        r#","bid_iv":"#,
        // Sometimes there is no volatility that gives the price.
        Rounded(if random.once_in(10) { 0.0 } else { value.volatility * 98.0 }, 2),
    );
    write_best(market, out);
    put!(out, r#","ask_iv":"#, Rounded(value.volatility * 102.0, 2));
}

fn write_best(market: &Market<'_>, out: &mut Vec<u8>) {
    let (bid, ask) = (market.book.middle, market.book.middle + 1);
    put!(
        out,
        r#","best_bid_price":"#,
        Price(market, bid),
        r#","best_bid_amount":"#,
        Size(market, u64::from(market.book.size(bid))),
        r#","best_ask_price":"#,
        Price(market, ask),
        r#","best_ask_amount":"#,
        Size(market, u64::from(market.book.size(ask))),
    );
}
