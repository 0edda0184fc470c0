//! OKX, once `OKEx`: spot, futures, perpetual swaps and options. Until the end of 2021 all of them
//! spoke the third version of the exchange's API, and since then the fifth.

mod derivatives;
mod options;
mod symbols;
mod v3;
mod v5;
mod v5_rows;

use crate::exchange::{Exchange, Filter, Kind, Normalizer, Period, SymbolCase, Wanted};
use crate::mapper::{Mapper, MapperSetup};
use crate::time::Timestamp;

use symbols::{UsdcIndex, index_of, pair_of};
use v3::V3;
use v5::V5;

const V5_START: Timestamp = Timestamp::of_day(2021, 12, 23);
const SPOT_TICK_BOOKS_START: Timestamp = Timestamp::of_day(2020, 4, 10);
const FUTURES_TICK_BOOKS_START: Timestamp = Timestamp::of_day(2019, 12, 5);
const SWAP_TICK_BOOKS_START: Timestamp = Timestamp::of_day(2020, 2, 8);
const QUOTES_START: Timestamp = Timestamp::of_day(2022, 5, 6);
/// For some days the archive had to make do with the slower book.
const SLOW_BOOKS_START: Timestamp = Timestamp::of_day(2023, 2, 25);
const SLOW_BOOKS_END: Timestamp = Timestamp::of_day(2023, 3, 9);
const PUBLIC_BOOKS_START: Timestamp = Timestamp::of_day(2026, 5, 21);
const USDC_INDEX_START: Timestamp = Timestamp::of_minute(2023, 4, 10, 8, 40);
const ALL_TRADES_START: Timestamp = Timestamp::of_day(2023, 10, 19);

/// The period of derivative tickers in which contracts in USDC follow the index in USD.
const USD_INDEX_PERIOD: usize = 1;

macro_rules! trades {
    ($market:literal) => {
        Normalizer {
            kind: Kind::Trades,
            periods: &[
                Period::until(V5_START, Wanted::upper(&[concat!($market, "/trade")])),
                Period::until(ALL_TRADES_START, Wanted::upper(&["trades"])),
                Period::open(Wanted::upper(&["trades-all"])),
            ],
        }
    };
}

/// Books come from the last channel of a period. The first period asks for tick-by-tick books too,
/// though it does not read them.
macro_rules! book_changes {
    ($market:literal, $tick_books_start:ident) => {
        Normalizer {
            kind: Kind::BookChanges,
            periods: &[
                Period::until(
                    $tick_books_start,
                    Wanted::upper(&[concat!($market, "/depth_l2_tbt"), concat!($market, "/depth")]),
                ),
                Period::until(V5_START, Wanted::upper(&[concat!($market, "/depth_l2_tbt")])),
                Period::until(SLOW_BOOKS_START, Wanted::upper(&["books-l2-tbt"])),
                Period::until(SLOW_BOOKS_END, Wanted::upper(&["books"])),
                Period::until(PUBLIC_BOOKS_START, Wanted::upper(&["books-l2-tbt"])),
                Period::open(Wanted::upper(&["books"])),
            ],
        }
    };
}

macro_rules! derivative_tickers {
    ($($v3_channel:literal),*) => {
        Normalizer {
            kind: Kind::DerivativeTickers,
            periods: &[
                Period::until(V5_START, Wanted::upper(&[$($v3_channel),*])),
                Period::until(
                    USDC_INDEX_START,
                    Wanted::Custom(|symbols| derivative_filters(symbols, UsdcIndex::Usd)),
                ),
                Period::open(Wanted::Custom(|symbols| {
                    derivative_filters(symbols, UsdcIndex::Usdc)
                })),
            ],
        }
    };
}

macro_rules! liquidations {
    ($market:literal) => {
        Normalizer {
            kind: Kind::Liquidations,
            periods: &[
                Period::until(V5_START, Wanted::upper(&[concat!($market, "/liquidation")])),
                Period::open(Wanted::upper(&["liquidations", "liquidation-orders"])),
            ],
        }
    };
}

macro_rules! book_tickers {
    ($market:literal) => {
        Normalizer {
            kind: Kind::BookTickers,
            periods: &[
                Period::until(V5_START, Wanted::upper(&[concat!($market, "/ticker")])),
                Period::until(QUOTES_START, Wanted::upper(&["tickers"])),
                Period::open(Wanted::upper(&["bbo-tbt"])),
            ],
        }
    };
}

pub(super) const EXCHANGES: &[Exchange] = &[
    Exchange {
        id: "okex",
        normalizers: &[
            trades!("spot"),
            book_changes!("spot", SPOT_TICK_BOOKS_START),
            book_tickers!("spot"),
        ],
        mapper: |setup| mapper(setup, "spot"),
    },
    Exchange {
        id: "okex-futures",
        normalizers: &[
            trades!("futures"),
            book_changes!("futures", FUTURES_TICK_BOOKS_START),
            derivative_tickers!("futures/ticker", "futures/mark_price"),
            liquidations!("futures"),
            book_tickers!("futures"),
        ],
        mapper: |setup| mapper(setup, "futures"),
    },
    Exchange {
        id: "okex-swap",
        normalizers: &[
            trades!("swap"),
            book_changes!("swap", SWAP_TICK_BOOKS_START),
            derivative_tickers!("swap/ticker", "swap/mark_price", "swap/funding_rate"),
            liquidations!("swap"),
            book_tickers!("swap"),
        ],
        mapper: |setup| mapper(setup, "swap"),
    },
    Exchange {
        id: "okex-options",
        normalizers: &[
            trades!("option"),
            book_changes!("option", SWAP_TICK_BOOKS_START),
            Normalizer {
                kind: Kind::OptionsSummary,
                periods: &[
                    Period::until(V5_START, Wanted::Custom(v3_summary_filters)),
                    Period::open(Wanted::Custom(summary_filters)),
                ],
            },
            book_tickers!("option"),
        ],
        mapper: |setup| mapper(setup, "option"),
    },
];

/// A mapper of the version that the channels asked for belong to: those of the third begin with a
/// market. All kinds change their version at the same time.
fn mapper(setup: &MapperSetup, market: &'static str) -> Box<dyn Mapper> {
    let book_channel = channels(setup, Kind::BookChanges).pop();
    let is_v3 = |kind| channels(setup, kind).iter().any(|channel| channel.contains('/'));
    if Kind::ALL.into_iter().any(is_v3) {
        let ticker_tables = channels(setup, Kind::DerivativeTickers);
        return Box::new(V3::new(setup, market, book_channel, ticker_tables));
    }
    let quote_channel = channels(setup, Kind::BookTickers).pop();
    let usdc_index = match setup.period(Kind::DerivativeTickers) {
        Some(USD_INDEX_PERIOD) => UsdcIndex::Usd,
        _ => UsdcIndex::Usdc,
    };
    Box::new(V5::new(setup, book_channel, quote_channel, usdc_index))
}

/// The channels that `kind` is made from; none if it is not asked for.
fn channels(setup: &MapperSetup, kind: Kind) -> Vec<String> {
    let exchange = EXCHANGES.iter().find(|exchange| exchange.id == setup.exchange);
    let periods = exchange.and_then(|exchange| exchange.normalizer(kind)).map(|of| of.periods);
    let period = periods.zip(setup.period(kind)).and_then(|(periods, at)| periods.get(at));
    let filters = period.map(|period| period.wanted.filters(None)).unwrap_or_default();
    filters.into_iter().map(|filter| filter.channel).collect()
}

fn in_capitals(symbols: Option<&[String]>) -> Option<Vec<String>> {
    symbols.map(|symbols| symbols.iter().map(|symbol| SymbolCase::Upper.apply(symbol)).collect())
}

fn filter(channel: &str, symbols: Option<&Vec<String>>) -> Filter {
    Filter { channel: channel.to_owned(), symbols: symbols.cloned() }
}

/// A contract's own channels, and the ticker of its index.
fn derivative_filters(symbols: Option<&[String]>, usdc_index: UsdcIndex) -> Vec<Filter> {
    let symbols = in_capitals(symbols);
    let index = |symbol: &String| index_of(symbol, usdc_index).unwrap_or(symbol).to_owned();
    let indexes = symbols.as_ref().map(|symbols| symbols.iter().map(index).collect());
    let (symbols, indexes) = (symbols.as_ref(), indexes.as_ref());
    vec![
        filter("tickers", symbols),
        filter("open-interest", symbols),
        filter("mark-price", symbols),
        filter("index-tickers", indexes),
        filter("funding-rate", symbols),
    ]
}

fn v3_summary_filters(symbols: Option<&[String]>) -> Vec<Filter> {
    let symbols = in_capitals(symbols);
    // The index of what is no option is one that does not exist: a filter without it would ask for
    // all of them.
    let index =
        |symbol: &String| pair_of(symbol).map_or(format!("{symbol}-undefined"), str::to_owned);
    let indexes = symbols.as_ref().map(|symbols| symbols.iter().map(index).collect());
    vec![filter("option/summary", symbols.as_ref()), filter("index/ticker", indexes.as_ref())]
}

/// Summaries are sent by family, the rest by option or by index.
fn summary_filters(symbols: Option<&[String]>) -> Vec<Filter> {
    let symbols = in_capitals(symbols);
    let unique = |part_of: fn(&str) -> Option<&str>| {
        symbols.as_ref().map(|symbols| {
            let mut parts: Vec<String> = Vec::new();
            for symbol in symbols {
                let part = part_of(symbol).unwrap_or(symbol);
                if !parts.iter().any(|known| known == part) {
                    parts.push(part.to_owned());
                }
            }
            parts
        })
    };
    let families = unique(pair_of);
    let indexes = unique(|symbol| index_of(symbol, UsdcIndex::Usdc));
    let symbols = symbols.as_ref();
    vec![
        filter("opt-summary", families.as_ref()),
        filter("index-tickers", indexes.as_ref()),
        filter("tickers", symbols),
        filter("open-interest", symbols),
        filter("mark-price", symbols),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::Kinds;
    use crate::json_write::write_message;
    use crate::message::Message;

    pub(super) const LOCAL: Timestamp = Timestamp::of_day(2024, 1, 1);

    fn exchange_of(id: &str) -> &'static Exchange {
        EXCHANGES.iter().find(|exchange| exchange.id == id).unwrap()
    }

    /// The JSON of what `messages` give, without the local time at its end.
    pub(super) fn mapped(
        id: &str,
        kinds: &[Kind],
        at: Timestamp,
        messages: &[&str],
    ) -> Vec<String> {
        let mut mapper = exchange_of(id).mapper(kinds.iter().copied().collect(), Some(at));
        let mut lines = Vec::new();
        let mut sink = |message: &Message<'_>| {
            let mut json = Vec::new();
            write_message(&mut json, message);
            let json = String::from_utf8(json).unwrap();
            lines.push(json.split(",\"localTimestamp\"").next().unwrap().to_owned());
        };
        for message in messages {
            mapper.map(message.as_bytes(), LOCAL, &mut sink).unwrap();
        }
        lines
    }

    fn filters(id: &str, kind: Kind, at: Timestamp, symbols: &[&str]) -> Vec<(String, String)> {
        let symbols: Vec<String> = symbols.iter().map(|symbol| (*symbol).to_owned()).collect();
        exchange_of(id)
            .filters(Kinds::default().with(kind), Some(at), Some(&symbols))
            .into_iter()
            .map(|filter| (filter.channel, filter.symbols.unwrap().join(" ")))
            .collect()
    }

    fn expected(filters: &[(&str, &str)]) -> Vec<(String, String)> {
        filters.iter().map(|(channel, symbols)| ((*channel).into(), (*symbols).into())).collect()
    }

    #[test]
    fn derivatives_ask_for_their_index() {
        let symbols = ["btc-usdc-swap", "BTC-USD_UM_XPERP-310404", "SYM"];
        let own = "BTC-USDC-SWAP BTC-USD_UM_XPERP-310404 SYM";
        for (until, indexes) in
            [(USDC_INDEX_START, "BTC-USD BTC-USD SYM"), (LOCAL, "BTC-USDC BTC-USD SYM")]
        {
            let at = Timestamp::from_micros(until.micros().unwrap() - 1);
            assert_eq!(
                filters("okex-swap", Kind::DerivativeTickers, at, &symbols),
                expected(&[
                    ("tickers", own),
                    ("open-interest", own),
                    ("mark-price", own),
                    ("index-tickers", indexes),
                    ("funding-rate", own),
                ])
            );
        }
    }

    #[test]
    fn options_ask_for_their_family_and_index_once() {
        let symbols =
            ["btc-usd-220128-40000-c", "BTC-USD-220128-50000-P", "BTC-USD_UM-231229-4000-P"];
        let own = "BTC-USD-220128-40000-C BTC-USD-220128-50000-P BTC-USD_UM-231229-4000-P";
        assert_eq!(
            filters("okex-options", Kind::OptionsSummary, LOCAL, &symbols),
            expected(&[
                ("opt-summary", "BTC-USD BTC-USD_UM"),
                ("index-tickers", "BTC-USD"),
                ("tickers", own),
                ("open-interest", own),
                ("mark-price", own),
            ])
        );
        assert_eq!(
            filters("okex-options", Kind::OptionsSummary, SWAP_TICK_BOOKS_START, &symbols[..1]),
            expected(&[("option/summary", "BTC-USD-220128-40000-C"), ("index/ticker", "BTC-USD")])
        );
        assert_eq!(
            filters("okex-options", Kind::OptionsSummary, LOCAL, &["SYM"])[1],
            ("index-tickers".to_owned(), "SYM".to_owned())
        );
    }
}
