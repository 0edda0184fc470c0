//! What each feed sends to subscribe, and what it makes of what exchanges say about a connection.

use market_data::{Filter, Kind, Kinds, exchange, normalized_exchanges};
use serde_json::{Value, json};
use test_messages::feed_table;

use super::super::feed::{ConnectionPlan, Incoming, Ping};
use super::*;
use crate::filters::optimise;

fn plans(id: &str, kinds: impl IntoIterator<Item = Kind>, symbols: &[&str]) -> Vec<ConnectionPlan> {
    let symbols: Vec<String> = symbols.iter().map(|&symbol| symbol.to_owned()).collect();
    let symbols = (!symbols.is_empty()).then_some(&*symbols);
    let filters = exchange(id).unwrap().filters(Kinds::from_iter(kinds), None, symbols);
    feed(id).unwrap().connections(&optimise(&filters)).unwrap()
}

fn subscribe(plan: &ConnectionPlan) -> Vec<Value> {
    plan.subscribe.iter().map(|text| serde_json::from_str(text).unwrap()).collect()
}

/// The addresses of all connections and what is sent over each.
fn asked(id: &str, kinds: &[Kind], symbols: &[&str]) -> Value {
    let plans = plans(id, kinds.iter().copied(), symbols);
    plans.iter().map(|plan| json!([plan.url, subscribe(plan)])).collect()
}

#[test]
fn every_exchange_that_is_normalized_can_be_streamed() {
    for exchange in normalized_exchanges() {
        assert!(feed(exchange.id).is_some(), "{}", exchange.id);
    }
    assert_eq!(feeds().count(), normalized_exchanges().count());
}

#[test]
fn subscriptions_are_the_recorded_ones() {
    let Some(table) = feed_table() else { return };
    let table: Value = serde_json::from_str(&table).unwrap();
    for (id, _) in feeds() {
        let recorded = &table[id];
        let connections = match recorded["connections"].as_array() {
            Some(several) => several.clone(),
            None => vec![recorded.clone()],
        };
        // One that has no messages is asked over HTTP.
        let with_messages = connections.iter().filter(|it| it.get("subscribe").is_some());
        let expected: Vec<(Value, Vec<Value>)> = with_messages
            .map(|connection| (connection["url"].clone(), recorded_messages(connection)))
            .collect();
        let found: Vec<(Value, Vec<Value>)> = plans(id, Kind::ALL, &["SYM-A", "SYM-B"])
            .iter()
            .map(|plan| (plan.url.into(), subscribe(plan)))
            .collect();
        assert_eq!(found, expected, "{id}");
    }
}

/// Two faults of what was recorded are not repeated: wishes that are there twice, and tickers of
/// Bitfinex for which nothing was sent.
fn recorded_messages(connection: &Value) -> Vec<Value> {
    let mut messages = connection["subscribe"].as_array().unwrap().clone();
    let mut symbols = ["tSYM-A", "tSYM-B"].into_iter();
    for message in &mut messages {
        if message.is_null() {
            let symbol = symbols.next().unwrap();
            *message = json!({"event": "subscribe", "channel": "ticker", "symbol": symbol});
        }
        if let Some(wishes) = message.get_mut("args").and_then(Value::as_array_mut) {
            let mut seen: Vec<Value> = Vec::new();
            wishes.retain(|wish| {
                let is_new = !seen.contains(wish);
                seen.push(wish.clone());
                is_new
            });
        }
    }
    messages
}

#[test]
fn bitmex_takes_ten_topics_a_message_and_all_symbols_in_one() {
    let symbols: Vec<String> = (0..12).map(|number| format!("S{number:02}")).collect();
    let symbols: Vec<&str> = symbols.iter().map(|symbol| &**symbol).collect();
    let [plan] = &*plans("bitmex", [Kind::Trades], &symbols) else { panic!("one connection") };
    let messages = subscribe(plan);
    assert_eq!(messages.len(), 2);
    assert_eq!(messages[1], json!({"op": "subscribe", "args": ["trade:S10", "trade:S11"]}));
    assert_eq!(
        asked("bitmex", &[Kind::Trades], &[]),
        json!([["wss://ws.bitmex.com/realtime", [{"op": "subscribe", "args": ["trade"]}]]])
    );
}

#[test]
fn deribit_asks_for_heartbeats_first() {
    let [plan] = &*plans("deribit", [Kind::Trades], &["BTC-PERPETUAL"]) else { panic!("one") };
    let greeting: Value = serde_json::from_str(&plan.greeting[0]).unwrap();
    assert_eq!(
        greeting,
        json!({"jsonrpc": "2.0", "id": 0, "method": "public/set_heartbeat",
               "params": {"interval": 10}})
    );
    assert_eq!(
        subscribe(plan),
        [json!({"jsonrpc": "2.0", "id": 3, "method": "public/subscribe",
                "params": {"channels": ["trades.BTC-PERPETUAL.100ms"]}})]
    );
}

#[test]
fn binance_fetches_what_it_is_not_sent() {
    let [plan] = &*plans("binance", [Kind::BookChanges], &["BTCUSDT"]) else { panic!("one") };
    assert_eq!(plan.url, "wss://stream.binance.com/stream?timeUnit=microsecond");
    let wish = json!({"method": "SUBSCRIBE", "params": ["btcusdt@depth@100ms"], "id": 1});
    assert_eq!(subscribe(plan), [wish]);
    assert_eq!(plan.depth_snapshots, ["btcusdt"]);
    let kinds = [Kind::BookChanges, Kind::DerivativeTickers];
    let [public, market] = &*plans("binance-futures", kinds, &["BTCUSDT"]) else { panic!("two") };
    assert_eq!(
        (&*public.depth_snapshots, &*public.open_interest),
        (&["btcusdt".into()][..], &[][..])
    );
    assert_eq!(market.open_interest, ["btcusdt"]);
    assert_eq!(
        subscribe(market),
        [
            json!({"method": "SUBSCRIBE", "params": ["btcusdt@markPrice@1s"], "id": 1}),
            json!({"method": "SUBSCRIBE", "params": ["btcusdt@ticker"], "id": 2}),
        ]
    );
    let [delivery] = &*plans("binance-delivery", kinds, &["BTCUSD_PERP"]) else { panic!("one") };
    assert_eq!(delivery.open_interest, ["btcusd_perp"]);
    assert_eq!(delivery.subscribe.len(), 4);
    let [us] = &*plans("binance-us", [Kind::Trades], &["BTCUSD"]) else { panic!("one") };
    assert_eq!(us.url, "wss://stream.binance.us:9443/stream");
}

#[test]
fn okex_asks_for_each_wish_once_and_for_trades_elsewhere() {
    assert_eq!(
        asked("okex-swap", &[Kind::Trades, Kind::Liquidations], &["A-SWAP", "B-SWAP"]),
        json!([
            ["wss://ws.okx.com:8443/ws/v5/public", [{"op": "subscribe", "args": [
                {"channel": "liquidation-orders", "instType": "SWAP"},
            ]}]],
            ["wss://ws.okx.com:8443/ws/v5/business", [{"op": "subscribe", "args": [
                {"channel": "trades-all", "instId": "A-SWAP"},
                {"channel": "trades-all", "instId": "B-SWAP"},
            ]}]],
        ])
    );
    let option = "BTC-USD_UM-250328-100000-C";
    let [plan] = &*plans("okex-options", [Kind::OptionsSummary], &[option]) else { panic!("one") };
    let messages = subscribe(plan);
    let wishes = messages[0]["args"].as_array().unwrap();
    assert!(wishes.contains(&json!({"channel": "opt-summary", "instFamily": "BTC-USD_UM"})));
    assert!(wishes.contains(&json!({"channel": "index-tickers", "instId": "BTC-USD"})));
    assert!(wishes.contains(&json!({"channel": "mark-price", "instId": option})));
}

#[test]
fn bybit_splits_contracts_by_their_margin() {
    assert_eq!(
        asked("bybit", &[Kind::Trades], &["BTCUSDT", "BTCPERP", "BTC-26SEP25", "BTCUSD"]),
        json!([
            ["wss://stream.bybit.com/v5/public/linear", [{"op": "subscribe", "args": [
                "publicTrade.BTC-26SEP25", "publicTrade.BTCPERP", "publicTrade.BTCUSDT",
            ]}]],
            ["wss://stream.bybit.com/v5/public/inverse", [{"op": "subscribe", "args": [
                "publicTrade.BTCUSD",
            ]}]],
        ])
    );
    assert_eq!(
        asked("bybit-spot", &[Kind::BookTickers], &["BTCUSDT"]),
        json!([["wss://stream.bybit.com/v5/public/spot",
                [{"op": "subscribe", "args": ["orderbook.1.BTCUSDT"]}]]])
    );
}

#[test]
fn the_others_ask_in_their_own_ways() {
    assert_eq!(
        asked("coinbase", &[Kind::BookChanges, Kind::Trades], &["BTC-USD"]),
        json!([["wss://ws-feed.exchange.coinbase.com", [{"type": "subscribe", "channels": [
            {"name": "level2_batch", "product_ids": ["BTC-USD"]},
            {"name": "matches", "product_ids": ["BTC-USD"]},
        ]}]]])
    );
    assert_eq!(
        asked("kraken", &[Kind::BookChanges, Kind::BookTickers], &["XBT/USD"]),
        json!([["wss://ws.kraken.com/v2", [
            {"method": "subscribe",
             "params": {"channel": "book", "symbol": ["XBT/USD"], "depth": 1000}},
            {"method": "subscribe",
             "params": {"channel": "ticker", "symbol": ["XBT/USD"], "event_trigger": "bbo"}},
        ]]])
    );
    assert_eq!(
        asked(
            "bitfinex-derivatives",
            &[Kind::Liquidations, Kind::DerivativeTickers],
            &["BTCF0:USTF0"]
        ),
        json!([["wss://api-pub.bitfinex.com/ws/2", [
            {"event": "conf", "flags": 98304},
            {"event": "subscribe", "channel": "status", "key": "liq:global"},
            {"event": "subscribe", "channel": "status", "key": "deriv:tBTCF0:USTF0"},
        ]]])
    );
    assert_eq!(
        asked("bitfinex", &[Kind::BookChanges], &["BTCUSD"])[0][1][1],
        json!({"event": "subscribe", "channel": "book", "symbol": "tBTCUSD", "len": 100,
               "prec": "P0", "freq": "F0"})
    );
    assert_eq!(
        asked("hyperliquid", &[Kind::BookChanges, Kind::Trades], &["BTC"]),
        json!([["wss://api.hyperliquid.xyz/ws", [
            {"method": "subscribe", "subscription": {"type": "l2Book", "coin": "BTC", "fast": true}},
            {"method": "subscribe", "subscription": {"type": "trades", "coin": "BTC"}},
        ]]])
    );
}

#[test]
fn many_coins_of_hyperliquid_are_asked_for_slowly() {
    let filter = |count| Filter {
        channel: "trades".to_owned(),
        symbols: Some((0..count).map(|number| format!("C{number}")).collect()),
    };
    let throttle =
        |count| feed("hyperliquid").unwrap().connections(&[filter(count)]).unwrap()[0].throttle;
    assert!(throttle(200).is_zero());
    assert!(!throttle(201).is_zero());
}

#[test]
fn signs_of_life_and_errors_are_told_from_data() {
    use Incoming::{Data, Heartbeat, Refusal};
    let long = format!(r#"{{"table":"trade","data":["{}"],"error":"no"}}"#, "x".repeat(5_000));
    for (id, message, expected) in [
        ("bitmex", r#"{"success":true,"subscribe":"trade:XBTUSD"}"#, Data),
        ("bitmex", r#"{"success":false,"subscribe":"trade:XBTUSD"}"#, Refusal),
        ("bitmex", r#"{"status":400,"error":"Unknown table: tradex"}"#, Refusal),
        ("bitmex", r#"{"table":"trade","data":[{"symbol":"error"}]}"#, Data),
        ("bitmex", &long, Data),
        ("deribit", r#"{"jsonrpc":"2.0","id":3,"error":{"message":"x","code":1}}"#, Refusal),
        (
            "deribit",
            r#"{"jsonrpc":"2.0","method":"heartbeat","params":{"type":"heartbeat"}}"#,
            Heartbeat,
        ),
        ("deribit", r#"{"jsonrpc":"2.0","id":3,"result":["trades.A"]}"#, Data),
        ("binance", r#"{"result":null,"id":1}"#, Data),
        ("binance", r#"{"id":1,"result":null}"#, Data),
        ("binance", r#"{"error":{"code":2,"msg":"Invalid request"}}"#, Refusal),
        ("binance-futures", r#"{"code":2,"msg":"Invalid request","id":1}"#, Refusal),
        ("binance", r#"{"data":{},"stream":"a@trade"}"#, Data),
        ("okex", "pong", Heartbeat),
        ("okex", r#"{"event":"subscribe","arg":{"channel":"books"}}"#, Data),
        ("okex", r#"{"event":"error","msg":"Illegal request","code":"60012"}"#, Refusal),
        (
            "okex",
            r#"{"event":"error","msg":"channel:x,instId:y doesn't exist","code":"60018"}"#,
            Data,
        ),
        ("bybit", r#"{"success":true,"ret_msg":"pong","conn_id":"1","op":"ping"}"#, Heartbeat),
        ("bybit", r#"{"op":"pong","args":["1"]}"#, Heartbeat),
        (
            "bybit-spot",
            r#"{"success":false,"ret_msg":"handler not found","op":"subscribe"}"#,
            Refusal,
        ),
        ("bybit", r#"{"success":true,"ret_msg":"","op":"subscribe"}"#, Data),
        ("coinbase", r#"{"type":"error","message":"Failed to subscribe"}"#, Refusal),
        ("coinbase", r#"{"type":"subscriptions","channels":[]}"#, Data),
        ("kraken", r#"{"error":"Currency pair not supported","success":false}"#, Refusal),
        ("kraken", r#"{"channel":"heartbeat"}"#, Heartbeat),
        ("kraken", r#"{"method":"pong","time_in":"a"}"#, Heartbeat),
        ("kraken", r#"{"method":"subscribe","success":true,"result":{}}"#, Data),
        ("bitfinex", r#"[77,"hb",5,1604000000000]"#, Heartbeat),
        ("bitfinex", "[77,[1,2,3]]", Data),
        ("bitfinex", r#"{"event":"error","msg":"symbol: invalid","code":10300}"#, Refusal),
        ("bitfinex", r#"{"event":"subscribed","chanId":77}"#, Data),
        ("hyperliquid", r#"{"channel":"pong"}"#, Heartbeat),
        ("hyperliquid", r#"{"channel":"error","data":"Invalid subscription"}"#, Refusal),
        ("hyperliquid", r#"{"channel":"subscriptionResponse","data":{}}"#, Data),
        ("kraken", "not JSON with \"success\"", Data),
    ] {
        assert_eq!(feed(id).unwrap().read(message.as_bytes()), expected, "{id} {message}");
    }
    let question = br#"{"jsonrpc":"2.0","method":"heartbeat","params":{"type":"test_request"}}"#;
    let Incoming::Question(answer) = feed("deribit").unwrap().read(question) else {
        panic!("a question");
    };
    assert_eq!(serde_json::from_str::<Value>(answer).unwrap()["method"], "public/test");
}

#[test]
fn pings_are_what_each_exchange_asks_for() {
    for (id, expected) in [
        ("bitmex", Ping::Frame),
        ("okex", Ping::Text("ping")),
        ("bybit", Ping::Text(r#"{"op":"ping"}"#)),
        ("kraken", Ping::Text(r#"{"method":"ping"}"#)),
        ("hyperliquid", Ping::Text(r#"{"method":"ping"}"#)),
        ("binance", Ping::Frame),
    ] {
        assert_eq!(feed(id).unwrap().ping(), expected, "{id}");
    }
}
