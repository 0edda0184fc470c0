//! What is computed from messages as they pass: trade bars, book snapshots and quotes.

use hashbrown::HashMap;

use crate::book_snapshot::{Grouping, SnapshotBook, SnapshotRoom, SnapshotSetup};
use crate::data_type::{DataForm, DataType};
use crate::mapper::Sink;
use crate::message::Message;
use crate::trade_bar::{OpenBar, TradeBarSetup};

/// Computes what some data types ask for from the messages of one exchange. Every symbol has its
/// own state.
#[derive(Clone, Debug, Default)]
pub struct Computing {
    bars: Vec<TradeBarSetup>,
    snapshots: Vec<SnapshotSetup>,
    /// By symbol, in the order of `bars`.
    open_bars: HashMap<String, Vec<OpenBar>>,
    /// By symbol.
    books: HashMap<String, SnapshotBook>,
    room: SnapshotRoom,
}

impl Computing {
    /// Computes what `data_types` ask for; plain ones ask for nothing.
    #[must_use]
    pub fn new(data_types: &[DataType]) -> Self {
        let mut computing = Self::default();
        for data_type in data_types {
            let name = data_type.name().to_owned();
            match data_type.form() {
                DataForm::Plain(_) => {}
                DataForm::TradeBar { kind, interval } => {
                    computing.bars.push(TradeBarSetup { name, kind, interval });
                }
                DataForm::BookSnapshot { depth, interval, grouping } => {
                    let grouping = grouping.map(Grouping::new);
                    computing.snapshots.push(SnapshotSetup { name, depth, interval, grouping });
                }
            }
        }
        computing
    }

    /// Sends `message`, and then what it completes, in the order in which the data types were asked
    /// for. A disconnect drops all state.
    pub fn take(&mut self, message: &Message<'_>, out: &mut dyn Sink) {
        out.take(message);
        match message {
            Message::Trade(trade) if !self.bars.is_empty() => {
                let open_bars = self
                    .open_bars
                    .entry_ref(&*trade.symbol)
                    .or_insert_with(|| vec![OpenBar::EMPTY; self.bars.len()]);
                for (setup, bar) in self.bars.iter().zip(open_bars) {
                    bar.take(setup, trade, out);
                }
            }
            Message::BookChange(change) if !self.snapshots.is_empty() => {
                self.books
                    .entry_ref(&*change.symbol)
                    .or_insert_with(|| SnapshotBook::new(self.snapshots.len()))
                    .take(&self.snapshots, change, &mut self.room, out);
            }
            Message::Disconnect(_) => self.reset(),
            _ => {}
        }
    }

    /// Drops all books and open bars.
    pub fn reset(&mut self) {
        self.open_bars.clear();
        self.books.clear();
    }
}
