//! Which updates of a book belong after its snapshot, told by their ids.

use crate::raw::Numeric;

/// The id of the snapshot of a new instrument, whose book is empty.
const EMPTY_BOOK_ID: f64 = -1.0;

/// How the ids of a snapshot and of the first update after it must fit together.
#[derive(Clone, Copy, Debug)]
pub(super) enum Joint {
    /// The update has the id after the snapshot's.
    Spot,
    /// The update has the snapshot's id, or says that it follows it.
    Futures,
}

#[derive(Clone, Copy)]
pub(super) struct Rules {
    pub(super) joint: Joint,
    pub(super) is_live: bool,
}

/// Where a book stands after its snapshot.
#[derive(Clone, Copy)]
pub(super) struct Sequence {
    pub(super) snapshot_id: f64,
    /// Whether an update joined on to the snapshot.
    pub(super) has_joined: bool,
}

/// How an update fits to what came before.
pub(super) enum Fit {
    /// The snapshot holds it already.
    Past,
    Next,
    /// There are updates missing between the snapshot and this one.
    Gap,
}

/// The ids of an update.
#[derive(Clone, Copy)]
pub(super) struct Ids {
    pub(super) first: f64,
    pub(super) last: f64,
    pub(super) previous: Numeric,
}

impl Sequence {
    /// How an update fits; if it does, the book stands after it.
    pub(super) fn follow(&mut self, ids: Ids, rules: Rules) -> Fit {
        let snapshot_id = self.snapshot_id;
        let is_past = match rules.joint {
            Joint::Spot => ids.last <= snapshot_id,
            Joint::Futures => ids.last < snapshot_id,
        };
        if is_past {
            return Fit::Past;
        }
        if !self.has_joined {
            let holds = |id: f64| ids.first <= id && ids.last >= id;
            let joins = match rules.joint {
                Joint::Spot => holds(snapshot_id + 1.0) || snapshot_id == EMPTY_BOOK_ID,
                Joint::Futures => holds(snapshot_id) || ids.previous == Numeric::Value(snapshot_id),
            };
            if !joins && rules.is_live {
                return Fit::Gap;
            }
            self.has_joined = true;
        }
        Fit::Next
    }
}
