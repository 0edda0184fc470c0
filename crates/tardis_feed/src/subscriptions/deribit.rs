//! Deribit: channels of several words between points, `book.BTC-PERPETUAL.100ms`.

use market_data::Filter;
use serde_json::Value;

use super::Dialect;
use super::message::{Reading, filter, part, says, texts};

pub(super) const DIALECT: Dialect = Dialect {
    read,
    example: r#"{"jsonrpc":"2.0","id":1,"method":"public/subscribe","params":{"channels":["book.BTC-PERPETUAL.100ms"]}}"#,
};

/// Channels whose names in the archive have points themselves.
const PREFIXES: &[&str] = &["markprice.options", "instrument.state.any"];
/// Kinds of instruments, in whose place another channel has an instrument.
const KINDS: &[&str] = &["any", "future", "future_combo", "option", "option_combo", "spot"];

fn read(message: &Value) -> Reading {
    // Unlimited intervals are for those who logged in: they subscribe in private to what is public.
    if !says(message, "method", "public/subscribe") && !says(message, "method", "private/subscribe")
    {
        return Ok(None);
    }
    let channels = texts(part(message, "params")?, "channels")?;
    Ok(Some(channels.into_iter().map(channel_filter).collect()))
}

fn channel_filter(name: &str) -> Filter {
    let in_archive = PREFIXES.iter().find_map(|prefix| {
        let rest = name.strip_prefix(prefix)?;
        let is_whole = rest.is_empty() || rest.starts_with('.');
        is_whole.then(|| (*prefix, rest.trim_start_matches('.')))
    });
    let (channel, rest) = in_archive.or_else(|| name.split_once('.')).unwrap_or((name, ""));
    let symbol = rest.split('.').next().unwrap_or_default();
    // All instruments of a kind and a currency: the archive goes by instrument, so all are given.
    let is_kind = KINDS.contains(&symbol);
    filter(channel, Some(symbol).filter(|symbol| !symbol.is_empty() && !is_kind))
}

#[cfg(test)]
mod tests {
    use super::super::assert_meanings;

    #[test]
    fn the_symbol_is_the_second_word() {
        let subscription = |channels: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","method":"public/subscribe","params":{{"channels":{channels}}}}}"#
            )
        };
        for (channels, meaning) in [
            (
                r#"["book.BTC-PERPETUAL.raw","trades.ETH-27DEC19.raw"]"#,
                "book=BTC-PERPETUAL trades=ETH-27DEC19",
            ),
            (r#"["book.ETH-PERPETUAL.100.1.100ms"]"#, "book=ETH-PERPETUAL"),
            (r#"["ticker.BTC-27MAR20-8000-C.agg2"]"#, "ticker=BTC-27MAR20-8000-C"),
            (r#"["quote.BTC-PERPETUAL"]"#, "quote=BTC-PERPETUAL"),
            (r#"["perpetual.BTC-PERPETUAL.raw"]"#, "perpetual=BTC-PERPETUAL"),
            (r#"["deribit_price_index.btc_usd"]"#, "deribit_price_index=btc_usd"),
            (r#"["deribit_price_ranking.btc_usd"]"#, "deribit_price_ranking=btc_usd"),
            (r#"["markprice.options.btc_usd"]"#, "markprice.options=btc_usd"),
            (
                r#"["platform_state","instrument.state.any.any"]"#,
                "platform_state instrument.state.any",
            ),
            (r#"["trades.option.any.100ms","trades.future.BTC.raw"]"#, "trades trades"),
            (r#"["chart.trades.BTC-PERPETUAL.1"]"#, "error"),
            ("[]", "error"),
            ("null", "error"),
        ] {
            assert_meanings("deribit", &[(&subscription(channels), meaning)]);
        }
        assert_meanings(
            "deribit",
            &[
                (r#"{"method":"private/subscribe","params":{"channels":"book.A.raw"}}"#, "book=A"),
                (r#"{"method":"public/subscribe"}"#, "error"),
                (
                    r#"{"method":"public/unsubscribe","params":{"channels":["book.A.raw"]}}"#,
                    "nothing",
                ),
                (r#"{"method":"public/set_heartbeat","params":{"interval":10}}"#, "nothing"),
            ],
        );
    }
}
