//! Gate.io: a channel and a list that begins with the symbol, in which more may follow: `method` until
//! 2023, `event` since then.

use serde_json::Value;

use super::Dialect;
use super::message::{Misread, Reading, filter, items, says, text};

pub(super) const DIALECT: Dialect = Dialect {
    read,
    example: r#"{"time":1700000000,"channel":"spot.trades","event":"subscribe","payload":["BTC_USDT"]}"#,
};

pub(super) const FUTURES: Dialect = Dialect {
    read,
    example: r#"{"time":1700000000,"channel":"futures.trades","event":"subscribe","payload":["BTC_USD"]}"#,
};

fn read(message: &Value) -> Reading {
    if says(message, "event", "subscribe") {
        let name = text(message, "channel")?;
        let (_, channel) = name.split_once('.').ok_or_else(|| Misread::Channel(name.to_owned()))?;
        let payload = items(message, "payload").unwrap_or_default();
        return Ok(Some(vec![filter(in_archive(name, channel), symbols(channel, payload)?)]));
    }
    let method = message.get("method").and_then(Value::as_str);
    let Some(channel) = method.and_then(|method| method.strip_suffix(".subscribe")) else {
        return Ok(None);
    };
    Ok(Some(vec![filter(channel, symbols(channel, items(message, "params")?)?)]))
}

/// On the spot market one channel kept its old name.
fn in_archive<'a>(name: &str, channel: &'a str) -> &'a str {
    if name == "spot.tickers" { "ticker" } else { channel }
}

fn symbols<'a>(channel: &str, list: &'a [Value]) -> Result<Vec<&'a str>, Misread> {
    // Depth and speed of a book follow its symbol.
    let has_more = matches!(channel, "depth" | "order_book" | "order_book_update")
        && list.iter().all(|item| !item.is_array());
    let count = if has_more { 1 } else { list.len() };
    let symbols = list.iter().take(count).map(|item| {
        let symbol = item.as_array().and_then(|several| several.first()).unwrap_or(item);
        let symbol = symbol.as_str().ok_or(Misread::Form)?;
        let inside = symbol.strip_prefix("ob.").and_then(|rest| rest.rsplit_once('.'));
        Ok(inside.map_or(symbol, |(symbol, _depth)| symbol))
    });
    let symbols: Vec<&str> = symbols.collect::<Result<_, _>>()?;
    Ok(symbols.into_iter().filter(|symbol| *symbol != "!all").collect())
}

#[cfg(test)]
mod tests {
    use super::super::assert_meanings;

    #[test]
    fn what_follows_a_symbol_is_none() {
        assert_meanings(
            "gate-io",
            &[
                (
                    r#"{"method":"trades.subscribe","params":["ETH_USDT","BTC_USDT"],"id":1}"#,
                    "trades=ETH_USDT,BTC_USDT",
                ),
                (
                    r#"{"method":"depth.subscribe","params":["ETH_USDT",5,"0.0001"]}"#,
                    "depth=ETH_USDT",
                ),
                (
                    r#"{"method":"depth.subscribe","params":[["A_B",30,"0"],["C_D",30,"0"]]}"#,
                    "depth=A_B,C_D",
                ),
                (
                    r#"{"channel":"spot.trades","event":"subscribe","payload":["A_B","C_D"]}"#,
                    "trades=A_B,C_D",
                ),
                (
                    r#"{"channel":"spot.order_book_update","event":"subscribe","payload":["A_B","100ms"]}"#,
                    "order_book_update=A_B",
                ),
                (
                    r#"{"channel":"spot.obu","event":"subscribe","payload":["ob.A_B.400"]}"#,
                    "obu=A_B",
                ),
                (
                    r#"{"channel":"spot.tickers","event":"subscribe","payload":["A_B"]}"#,
                    "ticker=A_B",
                ),
                (
                    r#"{"channel":"spot.candlesticks","event":"subscribe","payload":["1m","A_B"]}"#,
                    "error",
                ),
                (r#"{"channel":"spot.trades","event":"unsubscribe","payload":["A_B"]}"#, "nothing"),
                (r#"{"channel":"spot.ping"}"#, "nothing"),
                (r#"{"method":"server.ping","params":[]}"#, "nothing"),
            ],
        );
        assert_meanings(
            "gate-io-futures",
            &[
                (
                    r#"{"channel":"futures.order_book","event":"subscribe","payload":["BTC_USD","20","0"]}"#,
                    "order_book=BTC_USD",
                ),
                (
                    r#"{"channel":"futures.tickers","event":"subscribe","payload":["A_USD","B_USD"]}"#,
                    "tickers=A_USD,B_USD",
                ),
                (
                    r#"{"channel":"futures.trades","event":"subscribe","payload":["!all"]}"#,
                    "trades",
                ),
            ],
        );
    }
}
