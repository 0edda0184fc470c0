//! What holds for all exchanges: the registry is whole, every example is good, and clients that
//! subscribe as the recorded live feeds do get what those get.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use market_data::{exchange_ids, normalized_exchanges};
use proptest::prelude::*;

use super::*;

#[test]
fn every_exchange_of_the_archive_can_be_subscribed_to() {
    for exchange in exchange_ids() {
        assert!(can_subscribe(exchange), "{exchange}");
    }
    assert_eq!(DIALECTS.len(), exchange_ids().count());
    assert!(DIALECTS.is_sorted_by_key(|(exchange, _)| exchange));
    assert!(normalized_exchanges().all(|exchange| can_subscribe(exchange.id)));
}

#[test]
fn an_exchange_that_is_not_known_is_refused() {
    assert!(!can_subscribe("mtgox"));
    assert_eq!(
        subscribed_filters("mtgox", "{}").unwrap_err().to_string(),
        "Exchange mtgox is not supported via /ws-replay Websocket API, please use HTTP streaming API instead."
    );
}

#[test]
fn what_is_not_understood_is_named_with_an_example() {
    assert_eq!(
        subscribed_filters("ftx", r#"{"op":"subscribe"}"#).unwrap_err().to_string(),
        r#"this subscription to ftx is not understood: {"op":"subscribe"}; subscribe as with {"op":"subscribe","channel":"trades","market":"BTC-PERP"}"#
    );
    assert_eq!(
        subscribed_filters("ftx-us", r#"{"op":"subscribe","channel":"fills"}"#)
            .unwrap_err()
            .to_string(),
        r#"the archive does not have `fills` of ftx-us, only orderbook, trades, markets, orderbookGrouped, ticker; subscribe as with {"op":"subscribe","channel":"trades","market":"BTC-PERP"}"#
    );
    let long = format!(r#"{{"op":"subscribe","args":["{}"]}}"#, "é".repeat(10_000));
    assert!(subscribed_filters("bitmex", &long).unwrap_err().to_string().len() < 1_000);
    let long = format!(r#"{{"type":"subscribe","channels":["{}"]}}"#, "é".repeat(10_000));
    assert!(subscribed_filters("coinbase", &long).unwrap_err().to_string().len() < 1_000);
}

#[test]
fn examples_are_subscriptions() {
    for (exchange, dialect) in DIALECTS {
        let filters = subscribed_filters(exchange, dialect.example);
        assert!(matches!(filters, Ok(Some(_))), "{exchange}: {filters:?}");
    }
}

/// Channels of a live feed that its own subscriptions do not name.
const NOT_SUBSCRIBED: &[(&str, &str, &str)] = &[
    ("bitfinex", "ticker", "no message is sent for it"),
    ("bitfinex-derivatives", "ticker", "no message is sent for it"),
    ("serum", "quote", "level3 is subscribed to instead of level1"),
    ("mango", "quote", "level3 is subscribed to instead of level1"),
    ("star-atlas", "quote", "level3 is subscribed to instead of level1"),
];

/// Channels that come with a subscription, though the live feed has no use for them.
const MORE: &[(&str, &[&str])] = &[
    ("coinbase", &["last_match"]),
    ("cryptofacilities", &["trade_snapshot"]),
    ("hitbtc", &["snapshotTrades"]),
    ("mango", &["recent_trades", "l3snapshot", "open", "fill", "change", "done"]),
    ("polymarket", &["tick_size_change", "new_market", "market_resolved"]),
    ("serum", &["recent_trades", "l3snapshot", "open", "fill", "change", "done"]),
    ("star-atlas", &["recent_trades", "l3snapshot", "open", "fill", "change", "done"]),
];

#[test]
fn subscribing_as_the_live_feeds_do_gives_their_channels() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/conformance/feeds.json");
    let Ok(text) = fs::read_to_string(&path) else {
        eprintln!("conformance data is not there: {}", path.display());
        return;
    };
    let feeds: BTreeMap<String, Value> = serde_json::from_str(&text).unwrap();
    let mut compared = 0;
    for (exchange, feed) in &feeds {
        let one = std::slice::from_ref(feed);
        for connection in feed.get("connections").map_or(one, |several| several.as_array().unwrap())
        {
            let Some(messages) = connection.get("subscribe") else { continue };
            let wanted: Vec<Filter> =
                serde_json::from_value(connection["filters"].clone()).unwrap();
            let asked = asked(exchange, messages.as_array().unwrap());
            assert_same_wish(exchange, &asked, &wanted);
            compared += 1;
        }
    }
    assert!(compared > 60, "{compared}");
}

/// Channels with their symbols, of which none means all.
type Wish = BTreeMap<String, Vec<String>>;

fn asked(exchange: &str, messages: &[Value]) -> Wish {
    let mut wish = Wish::new();
    for message in messages {
        let filters = subscribed_filters(exchange, &message.to_string());
        let filters = filters.unwrap_or_else(|error| panic!("{error}"));
        for filter in filters.into_iter().flatten() {
            wish.entry(filter.channel).or_default().extend(filter.symbols.unwrap_or_default());
        }
    }
    wish
}

fn assert_same_wish(exchange: &str, asked: &Wish, wanted: &[Filter]) {
    for filter in wanted {
        let Some(symbols) = asked.get(&filter.channel) else {
            let is_known = |(id, channel, _): &(&str, &str, &str)| {
                *id == exchange && *channel == filter.channel
            };
            assert!(NOT_SUBSCRIBED.iter().any(is_known), "{exchange}: no {}", filter.channel);
            continue;
        };
        let lacks = |symbol: &&String| !symbols.is_empty() && !symbols.contains(symbol);
        let lacking = filter.symbols.iter().flatten().find(lacks);
        assert_eq!(lacking, None, "{exchange}: {} of {symbols:?}", filter.channel);
    }
    let more = MORE.iter().find(|(id, _)| *id == exchange).map_or(&[][..], |(_, more)| more);
    for channel in asked.keys() {
        let is_wanted = wanted.iter().any(|filter| filter.channel == *channel);
        assert!(is_wanted || more.contains(&&**channel), "{exchange}: {channel} is too much");
    }
}

/// JSON of the words that clients use, in any shape.
fn any_message() -> impl Strategy<Value = Value> {
    let fields = "op event method type cmd sub args params param channel channels payload topic symbol \
                  symbols subscription data name key";
    let words = "subscribe SUBSCRIBE sub public/subscribe trade.subscribe sub.deal trade book trades \
                 status a@trade !@ @ . .. : / _ deriv:t ob. ob.. market.é.trade instrument.state.any \
                 markprice.options é  ";
    let one_of = |words: &'static str| prop::sample::select(words.split(' ').collect::<Vec<_>>());
    let leaf = prop_oneof![
        6 => one_of(words).prop_map(Value::from),
        1 => any::<bool>().prop_map(Value::from),
        1 => any::<i32>().prop_map(Value::from),
        1 => Just(Value::Null),
    ];
    leaf.prop_recursive(4, 24, 5, move |inner| {
        let field = one_of(fields).prop_map(str::to_owned);
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            3 => prop::collection::btree_map(field, inner, 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn whatever_is_understood_is_in_the_archive(message in any_message()) {
        let message = message.to_string();
        for (exchange, _) in DIALECTS {
            let Ok(Some(filters)) = subscribed_filters(exchange, &message) else { continue };
            prop_assert!(!filters.is_empty());
            for filter in filters {
                let channels = exchange_channels(exchange).unwrap();
                prop_assert!(channels.contains(&&*filter.channel), "{}: {:?}", exchange, filter);
                prop_assert!(filter.symbols.is_none_or(|symbols| !symbols.is_empty()));
            }
        }
    }
}
