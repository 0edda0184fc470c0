//! What the lines of a minute are like, and that they are always the same.
#![allow(clippy::unwrap_used, clippy::panic)] // in what the tests share, too

mod reading;

use std::collections::BTreeSet;

use market_data::{Filter, Timestamp};
use reading::{Line, address, minute, minute_text, read, shaky_market};
use sample_market::{SampleMarket, SampleOptions};

fn filter(channel: &str, symbols: &[&str]) -> Filter {
    let symbols = symbols.iter().map(|symbol| (*symbol).to_owned()).collect();
    Filter { channel: channel.to_owned(), symbols: Some(symbols) }
}

#[test]
fn the_same_minute_has_the_same_lines_whatever_was_asked_before() {
    for exchange in SampleMarket::exchanges() {
        let forth: Vec<String> =
            (0..5).map(|number| minute_text(&shaky_market(), exchange, minute(number))).collect();
        let market = shaky_market();
        let back: Vec<String> =
            (0..5).rev().map(|number| minute_text(&market, exchange, minute(number))).collect();
        assert!(forth.iter().eq(back.iter().rev()), "{exchange}");
        assert_ne!(forth[1], forth[2]);
        let other = SampleMarket::new(SampleOptions { seed: 7, ..SampleOptions::default() });
        assert_ne!(minute_text(&other, exchange, minute(1)), forth[1]);
        // Seconds count as the minute that they are in.
        let later = Timestamp::from_micros(minute(2).micros().unwrap() + 59_999_999);
        assert_eq!(minute_text(&market, exchange, later), forth[2]);
    }
}

/// Recorded figures rest on these bytes. Whoever means to change them changes these sums too.
#[test]
fn the_lines_are_the_same_on_every_machine() {
    let market = SampleMarket::new(SampleOptions::default());
    let sum = |exchange: &str| {
        let text =
            minute_text(&market, exchange, minute(5)) + &minute_text(&market, exchange, minute(0));
        text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
            (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    };
    let sums: Vec<u64> = SampleMarket::exchanges().map(sum).collect();
    assert_eq!(
        sums,
        [5_106_045_328_162_344_664, 16_953_626_689_435_665_132, 3_613_462_577_145_430_991]
    );
}

#[test]
fn every_line_has_a_time_in_its_minute_and_valid_json() {
    let market = shaky_market();
    for exchange in SampleMarket::exchanges() {
        let mut before = String::new();
        let mut sent_before = 0;
        for number in 0..6 {
            let text = minute_text(&market, exchange, minute(number));
            assert!(text.ends_with('\n'));
            for line in read(&text) {
                let Line::Message { local, json, .. } = line else { continue };
                assert!(local.starts_with(&format!("2020-02-01T00:0{number}:")), "{local}");
                assert!(local.ends_with('Z') && local.as_bytes()[19] == b'.');
                assert!(local[20..27].bytes().all(|digit| digit.is_ascii_digit()));
                assert!(Timestamp::parse(&local).is_ok());
                assert!(local >= before, "{local} after {before}");
                before = local;
                let sent = ["E", "timestamp"].iter().find_map(|name| {
                    json["data"][*name].as_i64().or(json["params"]["data"][*name].as_i64())
                });
                let is_snapshot = json["generated"] == true;
                if let Some(sent) = sent.filter(|_| !is_snapshot) {
                    assert!(sent >= sent_before, "{exchange}: sent at {sent} after {sent_before}");
                    sent_before = sent;
                }
            }
        }
    }
}

#[test]
fn there_are_about_as_many_messages_as_asked_for() {
    for rate in [1, 100, 1_000] {
        let market = SampleMarket::new(SampleOptions {
            messages_per_second: rate,
            disconnects_per_hour: 0.0,
            ..SampleOptions::default()
        });
        for exchange in SampleMarket::exchanges() {
            let lines = minute_text(&market, exchange, minute(1)).lines().count();
            let expected = usize::try_from(rate * 60).unwrap();
            assert!(lines > expected * 3 / 4, "{exchange}: {lines} of {expected}");
            assert!(lines < expected * 2 + 250, "{exchange}: {lines} of {expected}");
        }
    }
}

#[test]
fn filters_leave_just_the_lines_that_pass_them() {
    let market = shaky_market();
    let cases: [(&str, &[Filter]); 5] = [
        ("bitmex", &[filter("trade", &["XBTUSD"]), filter("orderBookL2", &["ETHUSD", "SOLUSD"])]),
        ("bitmex", &[Filter { channel: "quote".to_owned(), symbols: None }]),
        (
            "binance-futures",
            &[filter("depth", &["btcusdt"]), filter("depthSnapshot", &["btcusdt"])],
        ),
        ("binance-futures", &[filter("openInterest", &[]), filter("aggTrade", &[])]),
        ("deribit", &[filter("ticker", &["ETH-PERPETUAL"]), filter("trades", &["nothing"])]),
    ];
    for (exchange, filters) in cases {
        for number in [0, 3] {
            let passes = |line: &Line| match line {
                Line::Disconnect => Some(String::new()),
                Line::Message { text, json, .. } => {
                    let (channel, symbol) = address(exchange, json);
                    let passes = |filter: &Filter| {
                        let symbols = filter.symbols.clone().unwrap_or_default();
                        filter.channel == channel
                            && (symbols.is_empty()
                                || symbols.iter().any(|one| one.to_uppercase() == symbol))
                    };
                    filters.iter().any(passes).then(|| text.clone())
                }
            };
            let all = read(&minute_text(&market, exchange, minute(number)));
            let expected: Vec<String> = all.iter().filter_map(passes).collect();
            let mut out = Vec::new();
            market.minute(exchange, minute(number), filters, &mut out).unwrap();
            let text = String::from_utf8(out).unwrap();
            assert_eq!(text.lines().collect::<Vec<_>>(), expected, "{exchange} {number}");
        }
    }
}

#[test]
fn every_channel_has_messages_of_every_symbol_that_needs_them() {
    let market = SampleMarket::new(SampleOptions::default());
    let needed: [(&str, &[&str]); 3] = [
        ("bitmex", &["trade", "orderBookL2", "instrument", "quote", "liquidation"]),
        (
            "binance-futures",
            &[
                "trade",
                "depth",
                "depthSnapshot",
                "bookTicker",
                "markPrice",
                "ticker",
                "openInterest",
                "forceOrder",
            ],
        ),
        ("deribit", &["trades", "book", "ticker"]),
    ];
    for (exchange, channels) in needed {
        let mut found = BTreeSet::new();
        let mut text = String::new();
        for number in 0..6 {
            text.push_str(&minute_text(&market, exchange, minute(number)));
        }
        for line in read(&text) {
            if let Line::Message { json, .. } = line {
                found.insert(address(exchange, &json));
            }
        }
        let symbols = market.symbols(exchange, minute(0)).unwrap();
        // Liquidations are rare.
        let is_rare = |channel: &str| matches!(channel, "liquidation" | "forceOrder");
        for channel in channels {
            for symbol in symbols.iter().take(if is_rare(channel) { 1 } else { symbols.len() }) {
                let pair = ((*channel).to_owned(), symbol.clone());
                assert!(found.contains(&pair), "{exchange}: no {channel} of {symbol}");
            }
        }
    }
    let deribit = (0..6).map(|number| minute_text(&market, "deribit", minute(number)));
    let text: String = deribit.collect();
    for part in [r#""liquidation":"T""#, r#""greeks":{"vega":"#, r#""funding_8h":"#] {
        assert!(text.contains(part), "deribit has no {part}");
    }
}

#[test]
fn options_end_after_the_day_they_are_traded_on() {
    let market = SampleMarket::new(SampleOptions::default());
    let symbols = market.symbols("deribit", minute(1_439)).unwrap();
    // 2020-02-01 was a Saturday.
    assert_eq!(&symbols[..2], ["BTC-PERPETUAL", "ETH-PERPETUAL"]);
    for asset in ["BTC", "ETH"] {
        for expiry in ["7FEB20", "6MAR20"] {
            for kind in ["-C", "-P"] {
                let start = format!("{asset}-{expiry}-");
                let fits = |name: &&String| name.starts_with(&start) && name.ends_with(kind);
                assert_eq!(symbols.iter().filter(fits).count(), 1, "{start}…{kind} {symbols:?}");
            }
        }
    }
    assert_eq!(symbols, market.symbols("deribit", minute(0)).unwrap());
}

#[test]
fn connections_are_lost_as_often_as_asked_for() {
    for (per_hour, least, most) in [(0.0, 0, 0), (20.0, 40, 80), (60.0, 180, 180)] {
        let options = SampleOptions {
            messages_per_second: 1,
            disconnects_per_hour: per_hour,
            ..SampleOptions::default()
        };
        let market = SampleMarket::new(options);
        let texts = (0..180).map(|number| minute_text(&market, "bitmex", minute(number)));
        let lost: usize =
            texts.map(|text| text.lines().filter(|line| line.is_empty()).count()).sum();
        assert!((least..=most).contains(&lost), "{lost} at {per_hour} in an hour");
    }
}

#[test]
fn any_time_has_lines_or_an_error() {
    let market =
        SampleMarket::new(SampleOptions { messages_per_second: 20, ..SampleOptions::default() });
    for exchange in SampleMarket::exchanges() {
        for year in [0, 1, 1_900, 1_969, 1_970, 2_225, 9_999] {
            for time in [Timestamp::of_day(year, 1, 1), Timestamp::of_minute(year, 12, 31, 23, 59)]
            {
                let text = minute_text(&market, exchange, time);
                assert!(text.starts_with(&format!("{year:04}-")), "{exchange} {time}");
                assert!(!read(&text).is_empty());
            }
        }
        for time in [
            Timestamp::INVALID,
            Timestamp::of_day(-1, 1, 1),
            Timestamp::of_day(10_000, 1, 1),
            Timestamp::from_millis(8_640_000_000_000_000),
            Timestamp::from_millis(-8_640_000_000_000_000),
        ] {
            let mut out = Vec::new();
            let error = market.minute(exchange, time, &[], &mut out).unwrap_err().to_string();
            assert!(error.contains("0000 to 9999") && out.is_empty(), "{error}");
        }
    }
}

#[test]
fn values_out_of_range_count_as_the_nearest_in_it() {
    let odd = |rate, levels, disconnects| {
        SampleMarket::new(SampleOptions {
            messages_per_second: rate,
            book_levels: levels,
            disconnects_per_hour: disconnects,
            symbols: 0,
            ..SampleOptions::default()
        })
    };
    assert_eq!(
        minute_text(&odd(0, 0, f64::NAN), "deribit", minute(0)),
        minute_text(&odd(1, 10, -5.0), "deribit", minute(0)),
    );
    assert_eq!(odd(1, 10, 0.0).symbols("deribit", minute(0)).unwrap(), ["BTC-PERPETUAL"]);
}

#[test]
fn errors_name_what_is_known() {
    let market = SampleMarket::new(SampleOptions::default());
    let error = |exchange: &str, channel: &str| {
        let filters = [filter(channel, &[])];
        market.minute(exchange, minute(0), &filters, &mut Vec::new()).unwrap_err().to_string()
    };
    assert_eq!(
        error("nasdaq", "trade"),
        "the sample market has no exchange `nasdaq`; it has bitmex, binance-futures, deribit"
    );
    let text = error("deribit", "trade");
    assert!(text.starts_with("deribit has no channel `trade`; it has book, "), "{text}");
}
