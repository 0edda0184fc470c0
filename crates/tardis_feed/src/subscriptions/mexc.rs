//! MEXC: on the spot market channels with a symbol at their end, on futures a method for each channel.
//! Snapshots of books are kept beside their updates.

use serde_json::Value;

use super::Dialect;
use super::message::{Reading, filter, says, symbols, texts, with_companion};

pub(super) const DIALECT: Dialect = Dialect {
    read,
    example: r#"{"method":"SUBSCRIPTION","params":["spot@public.aggre.deals.v3.api.pb@10ms@BTCUSDT"]}"#,
};

pub(super) const FUTURES: Dialect = Dialect {
    read: read_futures,
    example: r#"{"method":"sub.deal","param":{"symbol":"BTC_USDT"}}"#,
};

const UPDATES: &str = "spot@public.aggre.depth.v3.api.pb@10ms";
const SNAPSHOTS: &str = "spot@public.aggre.depth.snapshot.v3.api.pb@10ms";

fn read(message: &Value) -> Reading {
    if !says(message, "method", "SUBSCRIPTION") {
        return Ok(None);
    }
    let asked = texts(message, "params")?.into_iter().map(|name| match name.rsplit_once('@') {
        Some((channel, symbol)) => filter(channel, [symbol]),
        None => filter(name, []),
    });
    Ok(Some(with_companion(asked.collect(), UPDATES, SNAPSHOTS)))
}

fn read_futures(message: &Value) -> Reading {
    let method = message.get("method").and_then(Value::as_str);
    let Some(name) = method.and_then(|method| method.strip_prefix("sub.")) else {
        return Ok(None);
    };
    let symbols = message.get("param").map_or(Ok(Vec::new()), |param| symbols(param, "symbol"))?;
    let asked = vec![filter(&format!("push.{name}"), symbols)];
    Ok(Some(with_companion(asked, "push.depth", "push.depth.snapshot")))
}

#[cfg(test)]
mod tests {
    use super::super::assert_meanings;

    #[test]
    fn updates_come_with_snapshots() {
        assert_meanings(
            "mexc",
            &[
                (
                    r#"{"method":"SUBSCRIPTION","params":["spot@public.aggre.deals.v3.api.pb@10ms@BTCUSDT"]}"#,
                    "spot@public.aggre.deals.v3.api.pb@10ms=BTCUSDT",
                ),
                (
                    r#"{"method":"SUBSCRIPTION","params":["spot@public.aggre.depth.v3.api.pb@10ms@A"]}"#,
                    "spot@public.aggre.depth.v3.api.pb@10ms=A spot@public.aggre.depth.snapshot.v3.api.pb@10ms=A",
                ),
                (
                    r#"{"method":"SUBSCRIPTION","params":["spot@public.kline.v3.api.pb@A@Min15"]}"#,
                    "error",
                ),
                (r#"{"method":"UNSUBSCRIPTION","params":[]}"#, "nothing"),
                (r#"{"method":"PING"}"#, "nothing"),
            ],
        );
        assert_meanings(
            "mexc-futures",
            &[
                (
                    r#"{"method":"sub.depth","param":{"symbol":"BTC_USDT"},"gzip":false}"#,
                    "push.depth=BTC_USDT push.depth.snapshot=BTC_USDT",
                ),
                (
                    r#"{"method":"sub.funding.rate","param":{"symbol":"A_B"}}"#,
                    "push.funding.rate=A_B",
                ),
                (r#"{"method":"sub.contract"}"#, "push.contract"),
                (r#"{"method":"sub.kline","param":{"symbol":"A_B","interval":"Min60"}}"#, "error"),
                (r#"{"method":"unsub.deal","param":{"symbol":"A_B"}}"#, "nothing"),
                (r#"{"method":"ping"}"#, "nothing"),
            ],
        );
    }
}
