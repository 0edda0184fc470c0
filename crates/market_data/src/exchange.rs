//! What is known about an exchange: its channels, what can be normalized, since when and from what.

use crate::mapper::{Mapper, MapperSetup};
use crate::time::Timestamp;

/// What a raw message is normalized to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Trades.
    Trades,
    /// Changes of order books.
    BookChanges,
    /// Prices and funding of derivatives.
    DerivativeTickers,
    /// Prices, volatilities and greeks of options.
    OptionsSummary,
    /// Forced trades.
    Liquidations,
    /// Best bids and asks as the exchange reports them.
    BookTickers,
}

impl Kind {
    /// All kinds, in the order in which the messages made from one raw message are sent.
    pub const ALL: [Self; 6] = [
        Self::Trades,
        Self::BookChanges,
        Self::DerivativeTickers,
        Self::OptionsSummary,
        Self::Liquidations,
        Self::BookTickers,
    ];

    /// The data type that people ask for.
    #[must_use]
    pub const fn data_type(self) -> &'static str {
        match self {
            Self::Trades => "trade",
            Self::BookChanges => "book_change",
            Self::DerivativeTickers => "derivative_ticker",
            Self::OptionsSummary => "option_summary",
            Self::Liquidations => "liquidation",
            Self::BookTickers => "book_ticker",
        }
    }
}

/// A set of kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Kinds(u8);

impl Kinds {
    /// The same set with `kind` in it.
    #[must_use]
    pub const fn with(self, kind: Kind) -> Self {
        Self(self.0 | 1 << kind as u8)
    }

    /// Whether `kind` is in it.
    #[must_use]
    pub const fn has(self, kind: Kind) -> bool {
        self.0 & 1 << kind as u8 != 0
    }

    /// The kinds in it, in the order of [`Kind::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Kind> {
        Kind::ALL.into_iter().filter(move |kind| self.has(*kind))
    }
}

impl FromIterator<Kind> for Kinds {
    fn from_iter<I: IntoIterator<Item = Kind>>(kinds: I) -> Self {
        kinds.into_iter().fold(Self::default(), Self::with)
    }
}

/// What is asked of the archive or the exchange: a channel, and its symbols or all of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Filter {
    /// The exchange's channel.
    pub channel: String,
    /// The symbols, as the exchange writes them; `None` = all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbols: Option<Vec<String>>,
}

/// How an exchange writes symbols in its channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymbolCase {
    /// `BTCUSDT`
    Upper,
    /// `btcusdt`
    Lower,
    /// As the user wrote it.
    AsGiven,
}

/// What a period of a kind asks for.
#[derive(Clone, Copy, Debug)]
pub enum Wanted {
    /// These channels, all for the same symbols.
    Channels(&'static [&'static str], SymbolCase),
    /// What a function makes of the symbols; `None` = all.
    Custom(fn(Option<&[String]>) -> Vec<Filter>),
}

impl Wanted {
    /// `channels`, with symbols in capitals.
    #[must_use]
    pub const fn upper(channels: &'static [&'static str]) -> Self {
        Self::Channels(channels, SymbolCase::Upper)
    }

    /// `channels`, with symbols in small letters.
    #[must_use]
    pub const fn lower(channels: &'static [&'static str]) -> Self {
        Self::Channels(channels, SymbolCase::Lower)
    }

    /// `channels`, with symbols as they were given.
    #[must_use]
    pub const fn as_given(channels: &'static [&'static str]) -> Self {
        Self::Channels(channels, SymbolCase::AsGiven)
    }

    /// The filters for `symbols`; `None` = all.
    #[must_use]
    pub fn filters(self, symbols: Option<&[String]>) -> Vec<Filter> {
        match self {
            Self::Custom(filters) => filters(symbols),
            Self::Channels(channels, case) => {
                let symbols: Option<Vec<String>> = symbols
                    .map(|symbols| symbols.iter().map(|symbol| case.apply(symbol)).collect());
                channels
                    .iter()
                    .map(|channel| Filter {
                        channel: (*channel).to_owned(),
                        symbols: symbols.clone(),
                    })
                    .collect()
            }
        }
    }
}

impl SymbolCase {
    /// `symbol` written so.
    #[must_use]
    pub fn apply(self, symbol: &str) -> String {
        match self {
            Self::Upper => symbol.to_uppercase(),
            Self::Lower => symbol.to_lowercase(),
            Self::AsGiven => symbol.to_owned(),
        }
    }
}

/// A period in which one way of normalizing a kind holds.
#[derive(Clone, Copy, Debug)]
pub struct Period {
    /// Its end, exclusive; `None` = open.
    pub until: Option<Timestamp>,
    /// What it asks for.
    pub wanted: Wanted,
}

impl Period {
    /// A period without an end.
    #[must_use]
    pub const fn open(wanted: Wanted) -> Self {
        Self { until: None, wanted }
    }

    /// A period that ends at `until`, exclusive.
    #[must_use]
    pub const fn until(until: Timestamp, wanted: Wanted) -> Self {
        Self { until: Some(until), wanted }
    }
}

/// A kind that an exchange can be normalized to, with its periods, oldest first.
#[derive(Clone, Copy, Debug)]
pub struct Normalizer {
    /// The kind.
    pub kind: Kind,
    /// Its periods; the last one is open.
    pub periods: &'static [Period],
}

impl Normalizer {
    /// Which of the periods holds at `time`; `None` = the newest.
    #[must_use]
    pub fn period_at(&self, time: Option<Timestamp>) -> usize {
        let newest = self.periods.len().saturating_sub(1);
        let Some(time) = time.and_then(Timestamp::micros) else { return newest };
        let holds = |period: &Period| {
            period.until.and_then(Timestamp::micros).is_none_or(|until| time < until)
        };
        self.periods.iter().position(holds).unwrap_or(newest)
    }
}

/// An exchange.
#[derive(Clone, Copy, Debug)]
pub struct Exchange {
    /// Its name.
    pub id: &'static str,
    /// What it can be normalized to; empty if it can only be replayed raw.
    pub normalizers: &'static [Normalizer],
    /// Makes a mapper; kept together with `normalizers`.
    pub(crate) mapper: fn(&MapperSetup) -> Box<dyn Mapper>,
}

impl Exchange {
    /// What it says about `kind`, if it can be normalized to that.
    #[must_use]
    pub fn normalizer(&self, kind: Kind) -> Option<&'static Normalizer> {
        self.normalizers.iter().find(|normalizer| normalizer.kind == kind)
    }

    /// A mapper to `kinds` as it is right for messages received at `at`; `None` = now.
    #[must_use]
    pub fn mapper(&self, kinds: Kinds, at: Option<Timestamp>) -> Box<dyn Mapper> {
        (self.mapper)(&MapperSetup::new(self, kinds, at))
    }

    /// What must be asked for to make `kinds` at the time `at`: one filter per channel.
    #[must_use]
    pub fn filters(
        &self,
        kinds: Kinds,
        at: Option<Timestamp>,
        symbols: Option<&[String]>,
    ) -> Vec<Filter> {
        let mut filters: Vec<Filter> = Vec::new();
        for normalizer in kinds.iter().filter_map(|kind| self.normalizer(kind)) {
            let period = &normalizer.periods[normalizer.period_at(at)];
            for wanted in period.wanted.filters(symbols) {
                merge(&mut filters, wanted);
            }
        }
        filters
    }

    /// The times at which a way of normalizing `kinds` ends, in order.
    #[must_use]
    pub fn switch_times(&self, kinds: Kinds) -> Vec<Timestamp> {
        let mut times: Vec<Timestamp> = kinds
            .iter()
            .filter_map(|kind| self.normalizer(kind))
            .flat_map(|normalizer| normalizer.periods.iter().filter_map(|period| period.until))
            .collect();
        times.sort_unstable_by_key(|time| time.micros());
        times.dedup();
        times
    }
}

/// Adds `filter` to `filters`, joined with the one of its channel if there is one.
fn merge(filters: &mut Vec<Filter>, filter: Filter) {
    let Some(found) = filters.iter_mut().find(|found| found.channel == filter.channel) else {
        filters.push(filter);
        return;
    };
    match (&mut found.symbols, filter.symbols) {
        (Some(symbols), Some(more)) => {
            for symbol in more {
                if !symbols.contains(&symbol) {
                    symbols.push(symbol);
                }
            }
        }
        (found @ None, more) => *found = more,
        (Some(_), None) => {}
    }
}
