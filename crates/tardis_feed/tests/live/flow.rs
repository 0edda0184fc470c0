//! How messages flow: at once, in order, within bounds, and no longer than they are wanted.

use std::time::Duration;

use futures_util::{FutureExt as _, SinkExt as _};
use market_data::{Message, Timestamp};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite;

use crate::client::Client;
use crate::stand_in::{PATIENCE, StandIn};

const OPTIONS: &str = r#"{"exchange":"bitmex","symbols":["XBTUSD"],"dataTypes":["trade"]}"#;

fn trade(id: usize) -> String {
    format!(
        r#"{{"table":"trade","action":"insert","data":[{{"timestamp":"2021-03-04T05:06:08.123Z","symbol":"XBTUSD","side":"Sell","size":25,"price":8066,"trdMatchID":"{id}"}}]}}"#
    )
}

#[tokio::test]
async fn nothing_is_connected_before_a_chunk_is_asked_for() {
    let mut exchange = StandIn::start().await;
    let mut client = Client::new(exchange.port, OPTIONS);
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(exchange.peer().now_or_never().is_none());
    tokio::select! {
        _ = exchange.peer() => {}
        chunk = client.chunk() => panic!("{chunk:?}"),
    }
}

#[tokio::test]
async fn no_requests_are_a_session_that_ends_at_once() {
    let mut client = Client::new(1, "[]");
    assert!(client.chunk().await.unwrap().is_none());
}

#[tokio::test]
async fn several_requests_share_a_session_and_events_are_numbered() {
    let mut exchange = StandIn::start().await;
    let options = r#"[{"exchange":"bitmex","symbols":["XBTUSD"],"dataTypes":["trade"]},
                      {"exchange":"coinbase","symbols":["BTC-USD"],"dataTypes":["trade"]}]"#;
    let mut client = Client::new(exchange.port, options);
    let before = Timestamp::now();
    let serving = async {
        let (one, other) = (exchange.peer().await, exchange.peer().await);
        if one.path == "/realtime" { (one, other) } else { (other, one) }
    };
    let (mut bitmex, mut coinbase) = tokio::select! {
        peers = serving => peers,
        chunk = client.chunk() => panic!("{chunk:?}"),
    };
    coinbase
        .send(r#"{"type":"match","trade_id":7,"side":"sell","size":"0.015","price":"50124.00","product_id":"BTC-USD","time":"2022-12-01T00:00:02.123456Z"}"#)
        .await;
    client.lines(1).await;
    bitmex.send(&trade(1)).await;
    let lines = client.lines(2).await;
    assert!(lines[0].contains("\"exchange\":\"coinbase\""), "{lines:?}");
    assert!(lines[1].contains("\"exchange\":\"bitmex\""), "{lines:?}");
    let events = client.events(2, |_| true).await;
    let mut last = before.micros();
    for (event, number) in events.iter().zip(1..) {
        assert_eq!(event.event_seq, number);
        let Message::Trade(trade) = &event.message else { panic!("{event:?}") };
        let local = trade.local_timestamp.micros();
        assert!(last <= local && local <= event.ingest_timestamp.micros(), "{event:?}");
        last = local;
    }
    assert_eq!(client.progress()["connections"], 2);
}

#[tokio::test]
async fn a_slow_reader_makes_the_exchange_wait_and_loses_nothing() {
    /// Far more than the queue and all buffers of the system hold.
    const MESSAGES: usize = 3_000;
    const BYTES: usize = 16 << 10;
    let mut exchange = StandIn::start().await;
    let mut client = Client::new(exchange.port, OPTIONS);
    let serving = async {
        let mut peer = exchange.peer().await;
        peer.next().await;
        peer.send(&trade(0)).await;
        peer
    };
    let (mut peer, _) = tokio::join!(serving, client.lines(1));
    let (told, mut sent) = tokio::sync::watch::channel(0);
    let sending = tokio::spawn(async move {
        for id in 1..MESSAGES {
            let message = format!("{}{}", trade(id), " ".repeat(BYTES));
            peer.socket.send(tungstenite::Message::text(message)).await.unwrap();
            told.send_replace(id);
        }
        peer
    });
    // Until it does not get rid of more for a while.
    while timeout(Duration::from_millis(500), sent.changed()).await.is_ok() {}
    let stuck = *sent.borrow();
    assert!(stuck < MESSAGES - 1, "all was taken: nothing held the exchange back");
    let mut id = 1;
    while id < MESSAGES {
        let chunk = client.chunk().await.unwrap().unwrap();
        // Chunks are bounded however much is waiting.
        assert!(chunk.lines.len() < 256 << 10);
        for line in std::str::from_utf8(&chunk.lines).unwrap().lines() {
            assert!(line.contains(&format!("\"id\":\"{id}\"")), "{id}: {line}");
            id += 1;
        }
    }
    drop(timeout(PATIENCE, sending).await.unwrap().unwrap());
    assert_eq!(client.progress()["errors"], 0);
}

#[tokio::test]
async fn what_is_waiting_comes_in_one_chunk() {
    let mut exchange = StandIn::start().await;
    let mut client = Client::new(exchange.port, OPTIONS);
    let serving = async {
        let mut peer = exchange.peer().await;
        peer.next().await;
        peer.send(&trade(0)).await;
        peer
    };
    let (mut peer, _) = tokio::join!(serving, client.lines(1));
    for id in 1..=20 {
        peer.socket.feed(tungstenite::Message::text(trade(id))).await.unwrap();
    }
    peer.socket.flush().await.unwrap();
    // The connection takes them while nobody asks for a chunk.
    tokio::time::sleep(Duration::from_millis(50)).await;
    let chunk = client.chunk().await.unwrap().unwrap();
    assert_eq!(chunk.messages, 20);
}

#[tokio::test]
async fn a_call_that_is_given_up_loses_nothing() {
    let mut exchange = StandIn::start().await;
    let mut client = Client::new(exchange.port, OPTIONS);
    let mut peer = tokio::select! {
        peer = exchange.peer() => peer,
        chunk = client.chunk() => panic!("{chunk:?}"),
    };
    for id in 0..50 {
        peer.send(&trade(id)).await;
        let _ = timeout(Duration::from_micros(10), std::future::ready(())).await;
        assert!(client.session.next_chunk().now_or_never().is_none_or(|chunk| {
            panic!("nothing can be there before the connection had its turn: {chunk:?}")
        }));
        let line = &client.lines(id + 1).await[id];
        assert!(line.contains(&format!("\"id\":\"{id}\"")), "{line}");
    }
}

#[tokio::test]
async fn a_dropped_session_ends_its_connections() {
    let mut exchange = StandIn::start().await;
    let options =
        r#"{"exchange":"okex-swap","symbols":["A-SWAP"],"dataTypes":["trade","book_change"]}"#;
    let mut client = Client::new(exchange.port, options);
    let serving = async { [exchange.peer().await, exchange.peer().await] };
    let peers = tokio::select! {
        peers = serving => peers,
        chunk = client.chunk() => panic!("{chunk:?}"),
    };
    drop(client);
    for peer in peers {
        peer.until_gone().await;
    }
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(exchange.peer().now_or_never().is_none());
}
