//! Each exchange's protocol: what is sent to it, what it answers, and the messages that come of it.

use serde_json::{Value, json};

use crate::client::Client;
use crate::stand_in::StandIn;

/// A connection of an exchange: where it goes, what it is asked, what it sends.
struct Script<'a> {
    path: &'a str,
    asked: &'a [Value],
    sends: &'a [&'a str],
    /// What the client gets of it.
    lines: &'a [&'a str],
}

async fn play(options: &str, scripts: &[Script<'_>]) {
    let mut exchange = StandIn::start().await;
    let mut client = Client::new(exchange.port, options);
    let serving = async {
        let mut peers = Vec::new();
        for _ in scripts {
            peers.push(exchange.peer().await);
        }
        peers
    };
    // The session works while it is asked for chunks.
    let mut peers = tokio::select! {
        peers = serving => peers,
        chunk = client.chunk() => panic!("nothing was sent yet: {chunk:?}"),
    };
    let mut count = 0;
    for script in scripts {
        let peer = peers.iter_mut().find(|peer| peer.path == script.path).expect(script.path);
        for asked in script.asked {
            peer.expect(asked).await;
        }
        peer.send_all(script.sends).await;
        let found = &client.lines(count + script.lines.len()).await[count..];
        assert_eq!(found, script.lines, "{options}");
        count += script.lines.len();
    }
    assert_eq!(client.progress()["connected"], scripts.len());
    assert_eq!(client.progress()["messages"], count);
    assert_eq!(client.progress()["errors"], 0);
}

#[tokio::test]
async fn bitmex() {
    play(
        r#"{"exchange":"bitmex","symbols":["XBTUSD"],"dataTypes":["book_change","trade"]}"#,
        &[Script {
            path: "/realtime",
            asked: &[
                json!({"op": "subscribe", "args": ["orderBookL2:XBTUSD"]}),
                json!({"op": "subscribe", "args": ["trade:XBTUSD"]}),
            ],
            sends: &[
                r#"{"info":"Welcome to the BitMEX Realtime API.","version":"2"}"#,
                r#"{"success":true,"subscribe":"orderBookL2:XBTUSD","request":{}}"#,
                r#"{"table":"orderBookL2","action":"partial","data":[{"symbol":"XBTUSD","id":8799193350,"side":"Sell","size":1200,"price":8066.5,"timestamp":"2021-03-04T05:06:07.089Z"},{"symbol":"XBTUSD","id":8799193400,"side":"Buy","size":3500,"price":8066,"timestamp":"2021-03-04T05:06:07.089Z"}]}"#,
                r#"{"table":"orderBookL2","action":"update","data":[{"symbol":"XBTUSD","id":8799193350,"side":"Sell","size":900,"timestamp":"2021-03-04T05:06:07.100Z"}]}"#,
                r#"{"table":"trade","action":"insert","data":[{"timestamp":"2021-03-04T05:06:08.123Z","symbol":"XBTUSD","side":"Sell","size":25,"price":8066,"trdMatchID":"a3c1"}]}"#,
            ],
            lines: &[
r#"{"type":"book_change","symbol":"XBTUSD","exchange":"bitmex","isSnapshot":true,"bids":[{"price":8066,"amount":3500}],"asks":[{"price":8066.5,"amount":1200}],"timestamp":"2021-03-04T05:06:07.089Z","localTimestamp":"now"}"#,
r#"{"type":"book_change","symbol":"XBTUSD","exchange":"bitmex","isSnapshot":false,"bids":[],"asks":[{"price":8066.5,"amount":900}],"timestamp":"2021-03-04T05:06:07.100Z","localTimestamp":"now"}"#,
r#"{"type":"trade","symbol":"XBTUSD","exchange":"bitmex","id":"a3c1","price":8066,"amount":25,"side":"sell","timestamp":"2021-03-04T05:06:08.123Z","localTimestamp":"now"}"#,
],
        }],
    )
    .await;
}

#[tokio::test]
async fn deribit() {
    let heartbeat = json!({"jsonrpc": "2.0", "id": 0, "method": "public/set_heartbeat",
                           "params": {"interval": 10}});
    let subscribe = json!({"jsonrpc": "2.0", "id": 3, "method": "public/subscribe",
                           "params": {"channels": ["book.BTC-PERPETUAL.100ms",
                                                   "trades.BTC-PERPETUAL.100ms"]}});
    play(
        r#"{"exchange":"deribit","symbols":["BTC-PERPETUAL"],"dataTypes":["book_change","trade"]}"#,
        &[Script {
            path: "/ws/api/v2",
            asked: &[heartbeat, subscribe],
            sends: &[
                r#"{"jsonrpc":"2.0","id":0,"result":"ok"}"#,
                r#"{"jsonrpc":"2.0","method":"heartbeat","params":{"type":"heartbeat"}}"#,
                r#"{"jsonrpc":"2.0","method":"subscription","params":{"channel":"book.BTC-PERPETUAL.100ms","data":{"type":"snapshot","timestamp":1614834367089,"instrument_name":"BTC-PERPETUAL","change_id":31001,"bids":[["new",50120.5,1500.0]],"asks":[["new",50121.0,730.0]]}}}"#,
                r#"{"jsonrpc":"2.0","method":"subscription","params":{"channel":"book.BTC-PERPETUAL.100ms","data":{"type":"change","timestamp":1614834367150,"instrument_name":"BTC-PERPETUAL","prev_change_id":31001,"change_id":31002,"bids":[],"asks":[["delete",50121.0,0.0]]}}}"#,
                r#"{"jsonrpc":"2.0","method":"subscription","params":{"channel":"trades.BTC-PERPETUAL.100ms","data":[{"trade_seq":71,"trade_id":"139001","timestamp":1614834367200,"price":50121.0,"instrument_name":"BTC-PERPETUAL","direction":"buy","amount":70.0}]}}"#,
            ],
            lines: &[
r#"{"type":"book_change","symbol":"BTC-PERPETUAL","exchange":"deribit","isSnapshot":true,"bids":[{"price":50120.5,"amount":1500}],"asks":[{"price":50121,"amount":730}],"timestamp":"2021-03-04T05:06:07.089Z","localTimestamp":"now"}"#,
r#"{"type":"book_change","symbol":"BTC-PERPETUAL","exchange":"deribit","isSnapshot":false,"bids":[],"asks":[{"price":50121,"amount":0}],"timestamp":"2021-03-04T05:06:07.150Z","localTimestamp":"now"}"#,
r#"{"type":"trade","symbol":"BTC-PERPETUAL","exchange":"deribit","id":"139001","price":50121,"amount":70,"side":"buy","timestamp":"2021-03-04T05:06:07.200Z","localTimestamp":"now"}"#,
],
        }],
    )
    .await;
}

#[tokio::test]
async fn deribit_is_told_that_somebody_is_there() {
    let mut exchange = StandIn::start().await;
    let mut client = Client::new(
        exchange.port,
        r#"{"exchange":"deribit","symbols":["BTC-PERPETUAL"],"dataTypes":["trade"]}"#,
    );
    let asking = async {
        let mut peer = exchange.peer().await;
        peer.next().await;
        peer.next().await;
        peer.send(r#"{"jsonrpc":"2.0","method":"heartbeat","params":{"type":"test_request"}}"#)
            .await;
        peer.expect(&json!({"jsonrpc": "2.0", "method": "public/test", "id": 0, "params": {}}))
            .await;
    };
    tokio::select! {
        () = asking => {}
        chunk = client.chunk() => panic!("{chunk:?}"),
    }
}

#[tokio::test]
async fn okex_swap_over_two_connections() {
    play(
        r#"{"exchange":"okex-swap","symbols":["BTC-USDT-SWAP"],"dataTypes":["book_change","trade"]}"#,
        &[
            Script {
                path: "/ws/v5/public",
                asked: &[json!({"op": "subscribe", "args": [
                    {"channel": "books", "instId": "BTC-USDT-SWAP"}]})],
                sends: &[
                    r#"{"event":"subscribe","arg":{"channel":"books","instId":"BTC-USDT-SWAP"},"connId":"a4d3"}"#,
                    "pong",
                    r#"{"event":"error","msg":"channel:liquidations,instId:X doesn't exist","code":"60018","connId":"a4d3"}"#,
                    r#"{"arg":{"channel":"books","instId":"BTC-USDT-SWAP"},"action":"snapshot","data":[{"asks":[["50125.1","2","0","1"]],"bids":[["50120.2","5","0","3"]],"ts":"1672531200123","checksum":-1404728636}]}"#,
                    r#"{"arg":{"channel":"books","instId":"BTC-USDT-SWAP"},"action":"update","data":[{"asks":[["50125.1","0","0","0"]],"bids":[],"ts":"1672531200223","checksum":77}]}"#,
                ],
                lines: &[
r#"{"type":"book_change","symbol":"BTC-USDT-SWAP","exchange":"okex-swap","isSnapshot":true,"bids":[{"price":50120.2,"amount":5}],"asks":[{"price":50125.1,"amount":2}],"timestamp":"2023-01-01T00:00:00.123Z","localTimestamp":"now"}"#,
r#"{"type":"book_change","symbol":"BTC-USDT-SWAP","exchange":"okex-swap","isSnapshot":false,"bids":[],"asks":[{"price":50125.1,"amount":0}],"timestamp":"2023-01-01T00:00:00.223Z","localTimestamp":"now"}"#,
],
            },
            Script {
                path: "/ws/v5/business",
                asked: &[json!({"op": "subscribe", "args": [
                    {"channel": "trades-all", "instId": "BTC-USDT-SWAP"}]})],
                sends: &[
                    r#"{"arg":{"channel":"trades-all","instId":"BTC-USDT-SWAP"},"data":[{"instId":"BTC-USDT-SWAP","tradeId":"981235","px":"50121.7","sz":"3","side":"buy","ts":"1672531200123"}]}"#,
                ],
                lines: &[
r#"{"type":"trade","symbol":"BTC-USDT-SWAP","exchange":"okex-swap","id":"981235","price":50121.7,"amount":3,"side":"buy","timestamp":"2023-01-01T00:00:00.123Z","localTimestamp":"now"}"#,
],
            },
        ],
    )
    .await;
}

#[tokio::test]
async fn okex_futures_and_options() {
    for (id, symbol) in
        [("okex-futures", "BTC-USD-230331"), ("okex-options", "BTC-USD-230331-50000-C")]
    {
        let options =
            format!(r#"{{"exchange":"{id}","symbols":["{symbol}"],"dataTypes":["book_change"]}}"#);
        let snapshot = format!(
            r#"{{"arg":{{"channel":"books","instId":"{symbol}"}},"action":"snapshot","data":[{{"asks":[["0.0255","20","0","1"]],"bids":[["0.025","15","0","2"]],"ts":"1672531200123","checksum":-855196043}}]}}"#
        );
        let line = format!(
            r#"{{"type":"book_change","symbol":"{symbol}","exchange":"{id}","isSnapshot":true,"bids":[{{"price":0.025,"amount":15}}],"asks":[{{"price":0.0255,"amount":20}}],"timestamp":"2023-01-01T00:00:00.123Z","localTimestamp":"now"}}"#
        );
        play(
            &options,
            &[Script {
                path: "/ws/v5/public",
                asked: &[json!({"op": "subscribe", "args": [
                    {"channel": "books", "instId": symbol}]})],
                sends: &[&snapshot],
                lines: &[&line],
            }],
        )
        .await;
    }
}

#[tokio::test]
async fn bybit_over_two_connections() {
    let orderbook = |symbol: &str| {
        json!({"op": "subscribe", "args": [
        format!("orderbook.50.{symbol}"), format!("publicTrade.{symbol}")]})
    };
    play(
        r#"{"exchange":"bybit","symbols":["BTCUSDT","BTCUSD"],"dataTypes":["book_change","trade"]}"#,
        &[
            Script {
                path: "/v5/public/linear",
                asked: &[orderbook("BTCUSDT")],
                sends: &[
                    r#"{"success":true,"ret_msg":"","conn_id":"1","op":"subscribe"}"#,
                    r#"{"success":true,"ret_msg":"pong","conn_id":"1","op":"ping"}"#,
                    r#"{"topic":"orderbook.50.BTCUSDT","type":"snapshot","ts":1714834367089,"data":{"s":"BTCUSDT","b":[["50120.10","1.5"]],"a":[["50125.00","0.4"]],"u":41,"seq":901},"cts":1714834367080}"#,
                    r#"{"topic":"orderbook.50.BTCUSDT","type":"delta","ts":1714834367109,"data":{"s":"BTCUSDT","b":[["50119.00","0"]],"a":[],"u":42,"seq":902}}"#,
                ],
                lines: &[
r#"{"type":"book_change","symbol":"BTCUSDT","exchange":"bybit","isSnapshot":true,"bids":[{"price":50120.1,"amount":1.5}],"asks":[{"price":50125,"amount":0.4}],"timestamp":"2024-05-04T14:52:47.089Z","localTimestamp":"now"}"#,
r#"{"type":"book_change","symbol":"BTCUSDT","exchange":"bybit","isSnapshot":false,"bids":[{"price":50119,"amount":0}],"asks":[],"timestamp":"2024-05-04T14:52:47.109Z","localTimestamp":"now"}"#,
],
            },
            Script {
                path: "/v5/public/inverse",
                asked: &[orderbook("BTCUSD")],
                sends: &[
                    r#"{"topic":"publicTrade.BTCUSD","type":"snapshot","ts":1714834367139,"data":[{"T":1714834367137,"s":"BTCUSD","S":"Buy","v":"4","p":"50124.00","i":"3d9f"}]}"#,
                ],
                lines: &[
r#"{"type":"trade","symbol":"BTCUSD","exchange":"bybit","id":"3d9f","price":50124,"amount":4,"side":"buy","timestamp":"2024-05-04T14:52:47.137Z","localTimestamp":"now"}"#,
],
            },
        ],
    )
    .await;
}

#[tokio::test]
async fn bybit_spot() {
    play(
        r#"{"exchange":"bybit-spot","symbols":["BTCUSDT"],"dataTypes":["book_ticker"]}"#,
        &[Script {
            path: "/v5/public/spot",
            asked: &[json!({"op": "subscribe", "args": ["orderbook.1.BTCUSDT"]})],
            sends: &[
                r#"{"topic":"orderbook.1.BTCUSDT","type":"snapshot","ts":1714834367089,"data":{"s":"BTCUSDT","b":[["50120.10","1.5"]],"a":[["50125.00","0.4"]],"u":41,"seq":901}}"#,
            ],
            lines: &[
r#"{"type":"book_ticker","symbol":"BTCUSDT","exchange":"bybit-spot","askAmount":0.4,"askPrice":50125,"bidPrice":50120.1,"bidAmount":1.5,"timestamp":"2024-05-04T14:52:47.089Z","localTimestamp":"now"}"#,
],
        }],
    )
    .await;
}

#[tokio::test]
async fn coinbase() {
    play(
        r#"{"exchange":"coinbase","symbols":["BTC-USD"],"dataTypes":["book_change","trade"]}"#,
        &[Script {
            path: "/",
            asked: &[json!({"type": "subscribe", "channels": [
                {"name": "level2_batch", "product_ids": ["BTC-USD"]},
                {"name": "matches", "product_ids": ["BTC-USD"]}]})],
            sends: &[
                r#"{"type":"subscriptions","channels":[{"name":"level2_batch","product_ids":["BTC-USD"]}]}"#,
                r#"{"type":"snapshot","product_id":"BTC-USD","bids":[["50120.10","1.5"]],"asks":[["50125.00","0.4"]],"time":"2022-12-01T00:00:00.122581Z"}"#,
                r#"{"type":"l2update","product_id":"BTC-USD","changes":[["buy","50120.10","0.00000000"]],"time":"2022-12-01T00:00:01.089123Z"}"#,
                r#"{"type":"match","trade_id":139001,"side":"sell","size":"0.015","price":"50124.00","product_id":"BTC-USD","sequence":9001,"time":"2022-12-01T00:00:02.123456Z"}"#,
            ],
            lines: &[
r#"{"type":"book_change","symbol":"BTC-USD","exchange":"coinbase","isSnapshot":true,"bids":[{"price":50120.1,"amount":1.5}],"asks":[{"price":50125,"amount":0.4}],"timestamp":"2022-12-01T00:00:00.122581Z","localTimestamp":"now"}"#,
r#"{"type":"book_change","symbol":"BTC-USD","exchange":"coinbase","isSnapshot":false,"bids":[{"price":50120.1,"amount":0}],"asks":[],"timestamp":"2022-12-01T00:00:01.089123Z","localTimestamp":"now"}"#,
r#"{"type":"trade","symbol":"BTC-USD","exchange":"coinbase","id":"139001","price":50124,"amount":0.015,"side":"buy","timestamp":"2022-12-01T00:00:02.123456Z","localTimestamp":"now"}"#,
],
        }],
    )
    .await;
}

#[tokio::test]
async fn kraken() {
    play(
        r#"{"exchange":"kraken","symbols":["BTC/USD"],"dataTypes":["book_change","trade"]}"#,
        &[Script {
            path: "/v2",
            asked: &[
                json!({"method": "subscribe",
                       "params": {"channel": "book", "symbol": ["BTC/USD"], "depth": 1000}}),
                json!({"method": "subscribe",
                       "params": {"channel": "trade", "symbol": ["BTC/USD"]}}),
            ],
            sends: &[
                r#"{"channel":"status","type":"update","data":[{"system":"online","version":"2.0.10"}]}"#,
                r#"{"method":"subscribe","result":{"channel":"book","symbol":"BTC/USD"},"success":true}"#,
                r#"{"channel":"heartbeat"}"#,
                r#"{"channel":"book","type":"snapshot","data":[{"symbol":"BTC/USD","bids":[{"price":90120.1,"qty":1.5}],"asks":[{"price":90125.0,"qty":0.4}],"checksum":974947235,"timestamp":"2026-08-04T05:06:07.089123Z"}]}"#,
                r#"{"channel":"book","type":"update","data":[{"symbol":"BTC/USD","bids":[],"asks":[{"price":90125.0,"qty":0}],"checksum":12,"timestamp":"2026-08-04T05:06:07.189123Z"}]}"#,
                r#"{"channel":"trade","type":"update","data":[{"symbol":"BTC/USD","side":"sell","price":90121.7,"qty":0.003,"ord_type":"limit","trade_id":139001,"timestamp":"2026-08-04T05:06:07.289123Z"}]}"#,
            ],
            lines: &[
r#"{"type":"book_change","symbol":"BTC/USD","exchange":"kraken","isSnapshot":true,"bids":[{"price":90120.1,"amount":1.5}],"asks":[{"price":90125,"amount":0.4}],"timestamp":"2026-08-04T05:06:07.089123Z","localTimestamp":"now"}"#,
r#"{"type":"book_change","symbol":"BTC/USD","exchange":"kraken","isSnapshot":false,"bids":[],"asks":[{"price":90125,"amount":0}],"timestamp":"2026-08-04T05:06:07.189123Z","localTimestamp":"now"}"#,
r#"{"type":"trade","symbol":"BTC/USD","exchange":"kraken","id":"139001","price":90121.7,"amount":0.003,"side":"sell","timestamp":"2026-08-04T05:06:07.289123Z","localTimestamp":"now"}"#,
],
        }],
    )
    .await;
}

#[tokio::test]
async fn bitfinex() {
    play(
        r#"{"exchange":"bitfinex","symbols":["BTCUSD"],"dataTypes":["book_change","trade"]}"#,
        &[Script {
            path: "/ws/2",
            asked: &[
                json!({"event": "conf", "flags": 98304}),
                json!({"event": "subscribe", "channel": "book", "symbol": "tBTCUSD", "len": 100,
                       "prec": "P0", "freq": "F0"}),
                json!({"event": "subscribe", "channel": "trades", "symbol": "tBTCUSD"}),
            ],
            sends: &[
                r#"{"event":"info","version":2,"serverId":"7c1","platform":{"status":1}}"#,
                r#"{"event":"conf","status":"OK","flags":98304}"#,
                r#"{"event":"subscribed","channel":"book","chanId":17,"symbol":"tBTCUSD","prec":"P0","freq":"F0","len":"100","pair":"BTCUSD"}"#,
                "[17,[[50120.1,2,1.5],[50125,1,-0.4]],1,1614834367089]",
                r#"[17,"hb",3,1614834367091]"#,
                "[17,[50125,0,-1],2,1614834367090]",
                r#"{"event":"subscribed","channel":"trades","chanId":18,"symbol":"tBTCUSD","pair":"BTCUSD"}"#,
                r#"[18,"te",[502,1614834367093,0.02,50125],5,1614834367094]"#,
            ],
            lines: &[
r#"{"type":"book_change","symbol":"BTCUSD","exchange":"bitfinex","isSnapshot":true,"bids":[{"price":50120.1,"amount":1.5}],"asks":[{"price":50125,"amount":0.4}],"timestamp":"2021-03-04T05:06:07.089Z","localTimestamp":"now"}"#,
r#"{"type":"book_change","symbol":"BTCUSD","exchange":"bitfinex","isSnapshot":false,"bids":[],"asks":[{"price":50125,"amount":0}],"timestamp":"2021-03-04T05:06:07.090Z","localTimestamp":"now"}"#,
r#"{"type":"trade","symbol":"BTCUSD","exchange":"bitfinex","id":"502","price":50125,"amount":0.02,"side":"buy","timestamp":"2021-03-04T05:06:07.093Z","localTimestamp":"now"}"#,
],
        }],
    )
    .await;
}

#[tokio::test]
async fn bitfinex_derivatives() {
    play(
        r#"{"exchange":"bitfinex-derivatives","symbols":["BTCF0:USTF0"],"dataTypes":["trade"]}"#,
        &[Script {
            path: "/ws/2",
            asked: &[
                json!({"event": "conf", "flags": 98304}),
                json!({"event": "subscribe", "channel": "trades", "symbol": "tBTCF0:USTF0"}),
            ],
            sends: &[
                r#"{"event":"conf","status":"OK","flags":98304}"#,
                r#"{"event":"subscribed","channel":"trades","chanId":21,"symbol":"tBTCF0:USTF0","pair":"BTCF0:USTF0"}"#,
                r#"[21,"te",[503,1614834367093,-0.5,50125],2,1614834367094]"#,
            ],
            lines: &[
r#"{"type":"trade","symbol":"BTCF0:USTF0","exchange":"bitfinex-derivatives","id":"503","price":50125,"amount":0.5,"side":"sell","timestamp":"2021-03-04T05:06:07.093Z","localTimestamp":"now"}"#,
],
        }],
    )
    .await;
}

#[tokio::test]
async fn hyperliquid() {
    play(
        r#"{"exchange":"hyperliquid","symbols":["BTC"],"dataTypes":["book_change","trade"]}"#,
        &[Script {
            path: "/ws",
            asked: &[
                json!({"method": "subscribe",
                       "subscription": {"coin": "BTC", "type": "l2Book", "fast": true}}),
                json!({"method": "subscribe", "subscription": {"coin": "BTC", "type": "trades"}}),
            ],
            sends: &[
                r#"{"channel":"subscriptionResponse","data":{"method":"subscribe","subscription":{"type":"trades","coin":"BTC"}}}"#,
                r#"{"channel":"pong"}"#,
                r#"{"channel":"l2Book","data":{"coin":"BTC","time":1790160007687,"levels":[[{"px":"99998.0","sz":"0.5","n":2}],[]],"fast":true}}"#,
                r#"{"channel":"l2Book","data":{"coin":"BTC","time":1790160007787,"levels":[[],[{"px":"99999.0","sz":"1","n":1}]],"fast":true}}"#,
                // Trades from before the subscription come first.
                r#"{"channel":"trades","data":[{"coin":"BTC","side":"B","px":"99999.5","sz":"0.1","time":1790160007800,"hash":"0x0a","tid":809065877559}]}"#,
                r#"{"channel":"trades","data":[{"coin":"BTC","side":"B","px":"99999.5","sz":"0.1","time":1790160007900,"hash":"0x0a","tid":809065877560}]}"#,
            ],
            lines: &[
r#"{"type":"book_change","symbol":"BTC","exchange":"hyperliquid","isSnapshot":true,"bids":[{"price":99998,"amount":0.5}],"asks":[],"timestamp":"2026-09-23T10:40:07.687Z","localTimestamp":"now"}"#,
r#"{"type":"book_change","symbol":"BTC","exchange":"hyperliquid","isSnapshot":true,"bids":[],"asks":[{"price":99999,"amount":1}],"timestamp":"2026-09-23T10:40:07.787Z","localTimestamp":"now"}"#,
r#"{"type":"trade","symbol":"BTC","exchange":"hyperliquid","id":"809065877560","price":99999.5,"amount":0.1,"side":"buy","timestamp":"2026-09-23T10:40:07.900Z","localTimestamp":"now"}"#,
],
        }],
    )
    .await;
}
