//! Binance: order books and open interest that are fetched over HTTP.

use serde_json::json;

use crate::client::Client;
use crate::stand_in::{Answer, StandIn};

const BOOK: &str = r#"{"lastUpdateId":100,"bids":[["10.0","1.0"]],"asks":[["11.0","2.0"]]}"#;

fn info() -> Answer {
    let limits = r#"{"rateLimits":[{"rateLimitType":"REQUEST_WEIGHT","interval":"MINUTE","intervalNum":1,"limit":6000}]}"#;
    (200, "x-mbx-used-weight-1m: 20\r\n", limits.to_owned())
}

fn update(first: u32, last: u32) -> String {
    format!(
        r#"{{"stream":"btcusdt@depth@100ms","data":{{"e":"depthUpdate","E":1714834367089000,"s":"BTCUSDT","U":{first},"u":{last},"b":[["10.0","3.0"]],"a":[]}}}}"#
    )
}

#[tokio::test]
async fn a_book_is_fetched_and_joined_to_its_updates() {
    let mut exchange = StandIn::start().await;
    exchange.answer("/api/v1/exchangeInfo", [info()]);
    // It is asked again when it says that it is busy.
    exchange.answer(
        "/api/v1/depth",
        [(429, "retry-after: 0\r\n", String::new()), (200, "", BOOK.to_owned())],
    );
    let options = r#"{"exchange":"binance","symbols":["BTCUSDT"],"dataTypes":["book_change"]}"#;
    let mut client = Client::new(exchange.port, options);
    let serving = async {
        let mut peer = exchange.peer().await;
        assert_eq!(peer.path, "/stream?timeUnit=microsecond");
        let wish = json!({"method": "SUBSCRIBE", "params": ["btcusdt@depth@100ms"], "id": 1});
        peer.expect(&wish).await;
        peer.send(r#"{"result":null,"id":1}"#).await;
        peer.send_all(&[&update(90, 95), &update(96, 102)]).await;
        peer
    };
    let (mut peer, _) = tokio::join!(serving, client.lines(1));
    peer.send(&update(103, 104)).await;
    assert_eq!(
        client.lines(2).await,
        [
            r#"{"type":"book_change","symbol":"BTCUSDT","exchange":"binance","isSnapshot":true,"bids":[{"price":10,"amount":3}],"asks":[{"price":11,"amount":2}],"timestamp":"now","localTimestamp":"now"}"#,
            r#"{"type":"book_change","symbol":"BTCUSDT","exchange":"binance","isSnapshot":false,"bids":[{"price":10,"amount":3}],"asks":[],"timestamp":"2024-05-04T14:52:47.089000Z","localTimestamp":"now"}"#,
        ]
    );
    let depth = "/api/v1/depth?symbol=BTCUSDT&limit=1000";
    assert_eq!(exchange.asked(), ["/api/v1/exchangeInfo", depth, depth]);
    assert_eq!(client.progress()["errors"], 0);
}

#[tokio::test]
async fn a_gap_makes_the_book_and_its_connection_anew() {
    let mut exchange = StandIn::start().await;
    exchange.answer("/api/v1/exchangeInfo", [info()]);
    exchange.answer("/api/v1/depth", [(200, "", BOOK.to_owned())]);
    let options = r#"{"exchange":"binance","symbols":["BTCUSDT"],"dataTypes":["book_change"],
                      "withErrorMessages":true,"withDisconnectMessages":true}"#;
    let mut client = Client::new(exchange.port, options);
    let serving = async {
        let mut peer = exchange.peer().await;
        peer.send_all(&[&update(96, 99), &update(100, 100)]).await;
        peer
    };
    let (mut peer, _) = tokio::join!(serving, client.lines(1));
    peer.send_all(&[&update(200, 201), &update(202, 203)]).await;
    client.lines(3).await;
    let serving = async {
        let mut peer = exchange.peer().await;
        peer.send_all(&[&update(96, 99), &update(100, 100)]).await;
        peer
    };
    let (_peer, lines) = tokio::join!(serving, client.lines(4));
    assert!(lines[0].contains("\"isSnapshot\":true"), "{}", lines[0]);
    assert!(lines[1].starts_with(r#"{"type":"error","exchange":"binance","#), "{}", lines[1]);
    assert_eq!(
        lines[2],
        r#"{"type":"disconnect","exchange":"binance","localTimestamp":"now","symbols":["BTCUSDT"]}"#
    );
    assert!(lines[3].contains("\"isSnapshot\":true"), "{}", lines[3]);
    peer.until_gone().await;
    assert_eq!(client.progress()["reconnects"], 1);
}

#[tokio::test]
async fn books_that_cannot_be_had_are_an_error_of_the_connection() {
    let mut exchange = StandIn::start().await;
    exchange.answer("/api/v1/exchangeInfo", [(418, "retry-after: 1\r\n", String::new()), info()]);
    exchange.answer("/api/v1/depth", [(200, "", BOOK.to_owned())]);
    let options = r#"{"exchange":"binance-us","symbols":["BTCUSDT"],"dataTypes":["book_change"],
                      "withErrorMessages":true}"#;
    let mut client = Client::new(exchange.port, options);
    let serving = async {
        for _ in 0..2 {
            let mut peer = exchange.peer().await;
            peer.send_all(&[&update(96, 100), &update(101, 102)]).await;
            if exchange.asked().is_empty() {
                peer.until_gone().await;
            } else {
                return peer;
            }
        }
        panic!("the exchange was not asked");
    };
    let (_peer, lines) = tokio::join!(serving, client.lines(2));
    let place = format!("http://127.0.0.1:{}/api/v1/exchangeInfo answered 418", exchange.port);
    assert_eq!(
        lines[0],
        format!(
            r#"{{"type":"error","exchange":"binance-us","localTimestamp":"now","details":"{place}","subSequentErrorsCount":1}}"#
        )
    );
    assert!(lines[1].contains("\"isSnapshot\":true"), "{}", lines[1]);
}

#[tokio::test]
async fn futures_split_their_channels_and_poll_open_interest() {
    let mut exchange = StandIn::start().await;
    exchange.answer("/fapi/v1/exchangeInfo", [info()]);
    let interest = r#"{"openInterest":"61234.5","symbol":"BTCUSDT","time":1714834367089}"#;
    // The first answer is no good, which is an error of its own.
    let answers = ["nonsense", interest].map(|body| (200, "", body.to_owned()));
    exchange.answer("/fapi/v1/openInterest", answers);
    let options = r#"{"exchange":"binance-futures","symbols":["btcusdt"],
                      "dataTypes":["trade","derivative_ticker"]}"#;
    let mut client = Client::new(exchange.port, options);
    let serving = async {
        let (one, other) = (exchange.peer().await, exchange.peer().await);
        if one.path == "/public/stream" { (one, other) } else { (other, one) }
    };
    let (mut public, mut market) = tokio::select! {
        peers = serving => peers,
        chunk = client.chunk() => panic!("{chunk:?}"),
    };
    assert_eq!(market.path, "/market/stream");
    public.expect(&json!({"method": "SUBSCRIBE", "params": ["btcusdt@trade"], "id": 1})).await;
    market
        .expect(&json!({"method": "SUBSCRIBE", "params": ["btcusdt@markPrice@1s"], "id": 1}))
        .await;
    market.expect(&json!({"method": "SUBSCRIBE", "params": ["btcusdt@ticker"], "id": 2})).await;
    // Until the open interest is known it is not sent.
    let mark = |price: u32| {
        format!(
            r#"{{"stream":"btcusdt@markPrice@1s","data":{{"e":"markPriceUpdate","E":1714834367{price},"s":"BTCUSDT","p":"{price}.5","i":"50122.8","r":"0.0001","T":1714838400000}}}}"#
        )
    };
    let mut price = 100;
    let found = loop {
        market.send(&mark(price)).await;
        let count = client.all_lines().len();
        let line = client.lines(count + 1).await[count].clone();
        if line.contains("\"openInterest\":61234.5") {
            break line;
        }
        price += 1;
    };
    assert!(found.contains("\"symbol\":\"BTCUSDT\""), "{found}");
    public
        .send(r#"{"stream":"btcusdt@trade","data":{"e":"trade","E":1714834367139,"T":1714834367137,"s":"BTCUSDT","t":7,"p":"50124.00","q":"0.004","X":"MARKET","m":false}}"#)
        .await;
    // Another ticker may come before it.
    let is_trade = |line: &String| {
        line.starts_with(r#"{"type":"trade","symbol":"BTCUSDT","exchange":"binance-futures","#)
    };
    while !client.all_lines().iter().any(is_trade) {
        let count = client.all_lines().len();
        client.lines(count + 1).await;
    }
    let progress = client.progress();
    assert_eq!((&progress["errors"], &progress["reconnects"]), (&1.into(), &0.into()));
}

#[tokio::test]
async fn delivery_asks_for_indexes_by_pair() {
    let mut exchange = StandIn::start().await;
    exchange.answer("/dapi/v1/exchangeInfo", [info()]);
    let options = r#"{"exchange":"binance-delivery","symbols":["btcusd_perp"],
                      "dataTypes":["trade","derivative_ticker"],"withErrorMessages":true}"#;
    let mut client = Client::new(exchange.port, options);
    let serving = async {
        let mut peer = exchange.peer().await;
        assert_eq!(peer.path, "/stream");
        for (id, stream) in [
            "btcusd@indexPrice@1s",
            "btcusd_perp@markPrice@1s",
            "btcusd_perp@ticker",
            "btcusd_perp@trade",
        ]
        .iter()
        .enumerate()
        {
            let wish = json!({"method": "SUBSCRIBE", "params": [stream], "id": id + 1});
            peer.expect(&wish).await;
        }
        peer
    };
    // Open interest that cannot be had is an error, but no reason to connect again.
    let (mut peer, lines) = tokio::join!(serving, client.lines(1));
    assert!(
        lines[0].contains("/dapi/v1/openInterest?symbol=BTCUSD_PERP answered 404"),
        "{lines:?}"
    );
    peer.send(r#"{"stream":"btcusd_perp@trade","data":{"e":"trade","E":1714834367139,"T":1714834367137,"s":"BTCUSD_PERP","t":7,"p":"50124.0","q":"4","m":true}}"#)
        .await;
    let line = &client.lines(2).await[1];
    assert!(line.starts_with(r#"{"type":"trade","symbol":"BTCUSD_PERP","#), "{line}");
    assert_eq!(client.progress()["reconnects"], 0);
}
