//! Kraken: arrays that end with the channel and the symbol, and the objects of v2 that replaced
//! them.

mod v1;
mod v2;

use crate::exchange::{Exchange, Kind, Normalizer, Period, Wanted};
use crate::mapper::{MapError, Mapper, MapperSetup, Sink};
use crate::time::Timestamp;

const NAME: &str = "kraken";
const V2_FROM: Timestamp = Timestamp::of_day(2026, 7, 10);

pub(super) const EXCHANGES: &[Exchange] = &[Exchange {
    id: NAME,
    normalizers: &[
        Normalizer {
            kind: Kind::Trades,
            periods: &[
                Period::until(V2_FROM, Wanted::as_given(&["trade"])),
                Period::open(Wanted::as_given(&["trade"])),
            ],
        },
        Normalizer {
            kind: Kind::BookChanges,
            periods: &[
                Period::until(V2_FROM, Wanted::as_given(&["book"])),
                Period::open(Wanted::as_given(&["book"])),
            ],
        },
        Normalizer {
            kind: Kind::BookTickers,
            periods: &[
                Period::until(V2_FROM, Wanted::as_given(&["spread"])),
                Period::open(Wanted::as_given(&["ticker"])),
            ],
        },
    ],
    mapper: |setup| Box::new(Kraken { setup: *setup }),
}];

struct Kraken {
    setup: MapperSetup,
}

impl Mapper for Kraken {
    fn map(
        &mut self,
        message: &[u8],
        local: Timestamp,
        out: &mut dyn Sink,
    ) -> Result<(), MapError> {
        let wants = |kind, period| self.setup.period(kind) == Some(period);
        let has = |period| Kind::ALL.into_iter().any(|kind| wants(kind, period));
        match message.trim_ascii_start().first() {
            Some(b'[') if has(0) => match &*v1::channel(message)? {
                "trade" if wants(Kind::Trades, 0) => v1::map_trades(message, local, out),
                "spread" if wants(Kind::BookTickers, 0) => v1::map_spread(message, local, out),
                channel if channel.starts_with("book") && wants(Kind::BookChanges, 0) => {
                    v1::map_book(message, local, out)
                }
                _ => Ok(()),
            },
            Some(b'{') if has(1) => match &*v2::channel(message)? {
                "trade" if wants(Kind::Trades, 1) => v2::map_trades(message, local, out),
                "book" if wants(Kind::BookChanges, 1) => v2::map_book(message, local, out),
                "ticker" if wants(Kind::BookTickers, 1) => v2::map_tickers(message, local, out),
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::exchanges::map_all;

    #[test]
    fn each_period_has_its_own_form() {
        let messages = [
            r#"{"event":"heartbeat"}"#,
            r#"[170,[["0.01136500","2.51146536","1561939201.587070","s","l",""]],"trade","LTC/XBT"]"#,
            r#"{"channel":"heartbeat"}"#,
            r#"{"channel":"trade","type":"update","data":[{"symbol":"BTC/USD","side":"sell","price":100.1,"qty":0.25,"trade_id":123,"timestamp":"2026-07-10T00:00:00.123456Z"}]}"#,
        ];
        let counts = |at: &str| -> Vec<usize> {
            map_all("kraken", at, &messages).iter().map(Vec::len).collect()
        };
        assert_eq!(counts("2026-07-09T23:59:59.999Z"), [0, 1, 0, 0]);
        assert_eq!(counts("2026-07-10T00:00:00.000Z"), [0, 0, 0, 1]);
    }
}
