//! Room for the bytes of batches, used again when nobody holds the batch any more.
//!
//! A producer's batch is let go by the task that saw it acknowledged. Left to the allocator, its memory
//! goes back to the system there and comes anew from it here, page by page, which costs more than
//! encoding the events.

use std::sync::{Mutex, TryLockError};

use bytes::Bytes;

use crate::event_batch::BATCH_BYTES;

/// Bytes that a full batch takes with its last event, unless that is a large one.
pub(crate) const ROOM_BYTES: usize = BATCH_BYTES + BATCH_BYTES / 8;
/// How many rooms are kept at most while no batch is in them; about 9 MB.
const KEPT_ROOMS: usize = 64;

static SPARE: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

/// Calls `act` with the rooms that are not in use, unless somebody else has them. Nobody waits for them: in
/// a process that was forked, who had them may never give them back.
fn with_spare<T>(act: impl FnOnce(&mut Vec<Vec<u8>>) -> T) -> Option<T> {
    match SPARE.try_lock() {
        Ok(mut rooms) => Some(act(&mut rooms)),
        Err(TryLockError::Poisoned(rooms)) => Some(act(&mut rooms.into_inner())),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Room for a full batch.
pub(crate) fn take() -> Vec<u8> {
    let spare = with_spare(Vec::pop).flatten();
    spare.unwrap_or_else(|| Vec::with_capacity(ROOM_BYTES))
}

/// Keeps room for the next batch, if it has about the size of one and there is not enough already.
pub(crate) fn give_back(mut room: Vec<u8>) {
    if is_usual(&room) {
        room.clear();
        with_spare(|rooms| {
            if rooms.len() < KEPT_ROOMS {
                rooms.push(room);
            }
        });
    }
}

/// The bytes as a batch holds them; their room is given back with the last holder.
pub(crate) fn freeze(bytes: Vec<u8>) -> Bytes {
    if is_usual(&bytes) { Bytes::from_owner(Lent(bytes)) } else { Bytes::from(bytes) }
}

fn is_usual(room: &Vec<u8>) -> bool {
    (ROOM_BYTES..=2 * ROOM_BYTES).contains(&room.capacity())
}

struct Lent(Vec<u8>);

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        give_back(std::mem::take(&mut self.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_comes_back_with_the_last_holder_and_empty() {
        let mut room = take();
        room.extend_from_slice(b"event");
        let place = room.as_ptr();
        let batch = freeze(room);
        let part = batch.slice(1..3);
        drop(batch);
        assert_eq!(&part[..], b"ve");
        assert_eq!(part.as_ptr(), place.wrapping_add(1));
        drop(part);
        // Other tests take and give back as well.
        let found = std::iter::repeat_with(take).take(KEPT_ROOMS);
        let found: Vec<_> = found.inspect(|room| assert!(room.is_empty())).collect();
        found.into_iter().for_each(give_back);
        for _ in 0..2 * KEPT_ROOMS {
            give_back(Vec::with_capacity(ROOM_BYTES));
        }
        assert!(with_spare(|rooms| rooms.len()).is_none_or(|rooms| rooms <= KEPT_ROOMS));
    }

    #[test]
    fn nobody_waits_for_room_that_a_fork_left_locked() {
        let _locked = SPARE.lock().unwrap();
        assert_eq!(take().capacity(), ROOM_BYTES);
        give_back(take());
    }

    #[test]
    fn room_of_other_sizes_is_not_kept() {
        for bytes in [0, 1_000, 4 * ROOM_BYTES] {
            assert!(!is_usual(&Vec::with_capacity(bytes)));
            assert_eq!(freeze(vec![7; bytes]), vec![7; bytes]);
        }
        assert!(is_usual(&take()));
    }
}
