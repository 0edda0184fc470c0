//! Connections that are lost, refused, silent or say something that cannot be understood.

use std::time::Duration;

use bronze_core::DecodedEvent;
use market_data::{ErrorCode, Message};
use tardis_feed::LivePacing;

use crate::client::{Client, brisk};
use crate::stand_in::{Peer, StandIn};

const OPTIONS: &str = r#"{"exchange":"bitmex","symbols":["XBTUSD"],"dataTypes":["trade"]}"#;
const TOLD: &str = r#"{"exchange":"bitmex","symbols":["XBTUSD"],"dataTypes":["trade"],
    "withDisconnectMessages":true,"withErrorMessages":true}"#;
const DISCONNECT: &str =
    r#"{"type":"disconnect","exchange":"bitmex","localTimestamp":"now","symbols":["XBTUSD"]}"#;

fn trade(id: &str) -> String {
    format!(
        r#"{{"table":"trade","action":"insert","data":[{{"timestamp":"2021-03-04T05:06:08.123Z","symbol":"XBTUSD","side":"Sell","size":25,"price":8066,"trdMatchID":"{id}"}}]}}"#
    )
}

fn error(details: &str, count: u32) -> String {
    format!(
        r#"{{"type":"error","exchange":"bitmex","localTimestamp":"now","details":"{details}","subSequentErrorsCount":{count}}}"#
    )
}

/// Takes the next connection of `exchange`, sends a trade over it and waits until the client has it.
async fn trade_over(exchange: &mut StandIn, client: &mut Client, id: &str) -> Peer {
    let count = client.all_lines().len();
    let serving = async {
        let mut peer = exchange.peer().await;
        peer.next().await;
        peer.send(&trade(id)).await;
        peer
    };
    let (peer, lines) = tokio::join!(serving, client.lines(count + 1));
    assert!(lines[count].contains(&format!("\"id\":\"{id}\"")), "{}", lines[count]);
    peer
}

fn is_control(event: &DecodedEvent) -> bool {
    matches!(event.message, Message::Error(_) | Message::Disconnect(_))
}

#[tokio::test]
async fn a_closed_connection_is_made_again_and_published_with_its_reason() {
    let mut exchange = StandIn::start().await;
    let mut client = Client::new(exchange.port, OPTIONS);
    let peer = trade_over(&mut exchange, &mut client, "a").await;
    peer.close(1012, "restart").await;
    let _peer = trade_over(&mut exchange, &mut client, "b").await;
    // Nobody asked to be told, but it is published.
    assert_eq!(client.all_lines().len(), 2);
    let events = client.events(1, is_control).await;
    let Message::Disconnect(disconnect) = &events[0].message else { panic!("{events:?}") };
    assert_eq!((disconnect.close_code, &*disconnect.reason), (1012, "restart"));
    assert_eq!(disconnect.symbols.as_deref(), Some(&["XBTUSD".into()][..]));
    assert_eq!(events.len(), 1);
    let progress = client.progress();
    assert_eq!((&progress["reconnects"], &progress["errors"]), (&1.into(), &0.into()));
    assert_eq!((&progress["connected"], &progress["connections"]), (&1.into(), &1.into()));
    assert!(progress["last_message_us"].as_i64().unwrap() > 1_700_000_000_000_000);
}

#[tokio::test]
async fn errors_and_disconnects_are_told_to_those_who_ask() {
    let mut exchange = StandIn::start().await;
    let mut client = Client::new(exchange.port, TOLD);
    let mut peer = trade_over(&mut exchange, &mut client, "a").await;
    peer.send(r#"{"status":429,"error":"Rate limit exceeded","meta":{}}"#).await;
    let _peer = {
        client.lines(3).await;
        trade_over(&mut exchange, &mut client, "b").await
    };
    let said =
        r#"Received error message: {\"status\":429,\"error\":\"Rate limit exceeded\",\"meta\":{}}"#;
    assert_eq!(client.all_lines()[1..3], [error(said, 1), DISCONNECT.to_owned()]);
    let events = client.events(2, is_control).await;
    let [first, second] = &*events else { panic!("{events:?}") };
    let Message::Error(notice) = &first.message else { panic!("{first:?}") };
    assert_eq!((notice.code, notice.subsequent_errors), (ErrorCode::RateLimit, 1));
    assert!(matches!(second.message, Message::Disconnect(_)));
    assert!(client.progress()["last_error"].as_str().unwrap().starts_with("bitmex: Received"));
}

#[tokio::test]
async fn a_message_that_cannot_be_mapped_makes_the_connection_anew() {
    let mut exchange = StandIn::start().await;
    let mut client = Client::new(exchange.port, TOLD);
    let mut peer = trade_over(&mut exchange, &mut client, "a").await;
    // What comes after it over the same connection is passed over.
    peer.send_all(&["{nonsense", &trade("lost")]).await;
    client.lines(3).await;
    let _next = trade_over(&mut exchange, &mut client, "b").await;
    peer.until_gone().await;
    let lines = client.all_lines();
    assert!(lines[1].contains(r#""details":"not a message of bitmex: "#), "{}", lines[1]);
    assert_eq!(lines[2], DISCONNECT);
    assert_eq!(lines.len(), 4);
}

#[tokio::test]
async fn computed_state_is_dropped_with_the_connection() {
    let mut exchange = StandIn::start().await;
    let options =
        r#"{"exchange":"bitmex","symbols":["XBTUSD"],"dataTypes":["trade_bar_2ticks","trade"]}"#;
    let mut client = Client::new(exchange.port, options);
    let peer = trade_over(&mut exchange, &mut client, "a").await;
    peer.close(1000, "").await;
    let mut peer = trade_over(&mut exchange, &mut client, "b").await;
    peer.send(&trade("c")).await;
    let lines = client.lines(4).await;
    assert!(lines[3].starts_with(r#"{"type":"trade_bar""#), "{lines:?}");
    assert!(lines[3].contains("\"trades\":2"), "{lines:?}");
}

#[tokio::test]
async fn refused_connections_say_why() {
    let mut exchange = StandIn::start().await;
    exchange.refuse([(429, "retry-after: 0\r\n"), (403, ""), (502, "")]);
    let mut client = Client::new(exchange.port, TOLD);
    let serving = async { (exchange.peer().await, exchange.port) };
    let ((_peer, port), _) = tokio::join!(serving, client.lines(3));
    let place = format!("ws://127.0.0.1:{port}/realtime answered");
    let expected: Vec<String> = [(429, 1), (403, 2), (502, 3)]
        .map(|(status, count)| error(&format!("{place} {status}"), count))
        .into();
    // There was nothing to lose, so no loss is told.
    assert_eq!(client.all_lines(), expected);
    let codes: Vec<ErrorCode> = client
        .events(3, is_control)
        .await
        .iter()
        .map(|event| match &event.message {
            Message::Error(notice) => notice.code,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(codes, [ErrorCode::RateLimit, ErrorCode::Auth, ErrorCode::Connect]);
}

#[tokio::test]
async fn fifty_errors_in_a_row_end_the_session() {
    // Nobody listens there.
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let mut client = Client::new(port, TOLD);
    let failure = client.failure().await.to_string();
    assert_eq!(failure, "Too many subsequent errors when connecting to  bitmex WS API");
    let lines = client.all_lines();
    assert_eq!(lines.len(), 50);
    assert!(lines[49].ends_with("\"subSequentErrorsCount\":50}"), "{}", lines[49]);
    assert!(client.chunk().await.unwrap().is_none());
    assert_eq!(client.progress()["errors"], 50);
}

#[tokio::test]
async fn messages_between_errors_start_the_count_again() {
    let mut exchange = StandIn::start().await;
    let refusals = |count| vec![(500, ""); count];
    exchange.refuse(refusals(30));
    let mut client = Client::new(exchange.port, TOLD);
    let serving = async {
        let mut peer = exchange.peer().await;
        peer.send(&trade("a")).await;
        exchange.refuse(refusals(30));
        peer.close(1000, "").await;
        exchange.peer().await
    };
    let (_peer, lines) = tokio::join!(serving, client.lines(62));
    assert!(lines[29].ends_with("\"subSequentErrorsCount\":30}"), "{}", lines[29]);
    assert_eq!(lines[31], DISCONNECT);
    assert!(lines[32].ends_with("\"subSequentErrorsCount\":1}"), "{}", lines[32]);
}

#[tokio::test]
async fn silence_is_an_error_but_a_quiet_market_does_not_count() {
    let mut exchange = StandIn::start().await;
    let options = TOLD.replace('}', r#","timeoutIntervalMS":150}"#);
    let mut client = Client::new(exchange.port, &options);
    let serving = async {
        // It answers, but then has nothing to tell.
        for _ in 0..3 {
            let mut peer = exchange.peer().await;
            peer.send(r#"{"info":"Welcome","version":"2"}"#).await;
            peer.until_gone().await;
        }
        // It never answers.
        for _ in 0..3 {
            exchange.peer().await.until_gone().await;
        }
    };
    let ((), lines) = tokio::join!(serving, client.lines(12));
    let said = format!("ws://127.0.0.1:{}/realtime sent no messages for 150 ms", exchange.port);
    for (pair, count) in lines.chunks(2).zip([1, 1, 1, 1, 2, 3]) {
        assert_eq!(pair, [error(&said, count), DISCONNECT.to_owned()]);
    }
}

#[tokio::test]
async fn an_exchange_that_does_not_speak_tls_is_an_error() {
    let exchange = StandIn::start().await;
    let address = format!("wss://127.0.0.1:{}", exchange.port);
    let mut client = Client::with_variables(TOLD, brisk(), |name| {
        (name == "WSS_URL_BITMEX").then(|| address.clone())
    });
    let line = &client.lines(1).await[0];
    assert!(line.contains(&format!("\"details\":\"{address}/realtime: ")), "{line}");
}

#[tokio::test]
async fn heartbeats_are_sent_and_do_not_count_as_messages() {
    let mut exchange = StandIn::start().await;
    let pacing = LivePacing { ping_interval: Duration::from_millis(5), ..brisk() };
    let options = r#"{"exchange":"okex","symbols":["BTC-USDT"],"dataTypes":["trade"],
                      "withErrorMessages":true,"timeoutIntervalMS":200}"#;
    let mut client = Client::with_pacing(exchange.port, options, pacing);
    let serving = async {
        let mut peer = exchange.peer().await;
        peer.next().await;
        peer.ping().await;
        let mut pings = 0;
        while let Some(Ok(message)) = futures_util::StreamExt::next(&mut peer.socket).await {
            if message.to_text().is_ok_and(|text| text == "ping") {
                pings += 1;
                if futures_util::SinkExt::send(&mut peer.socket, "pong".into()).await.is_err() {
                    break;
                }
            }
        }
        pings
    };
    let (pings, lines) = tokio::join!(serving, client.lines(1));
    assert!(pings > 1, "{pings}");
    assert!(lines[0].contains("sent no messages for 200 ms"), "{lines:?}");
}
