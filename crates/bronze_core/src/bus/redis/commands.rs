//! The commands of a request, in one buffer, with room around them for what makes them a transaction.

/// Buffers larger than this are not kept for the next request.
const KEPT_BYTES: usize = 8 * 1024 * 1024;

/// What comes before the commands of a quiet transaction, and after them.
const QUIET: (&[u8], &[u8]) = (
    b"*3\r\n$6\r\nCLIENT\r\n$5\r\nREPLY\r\n$3\r\nOFF\r\n*1\r\n$5\r\nMULTI\r\n\
      *3\r\n$6\r\nCLIENT\r\n$5\r\nREPLY\r\n$2\r\nON\r\n",
    b"*1\r\n$4\r\nEXEC\r\n*3\r\n$6\r\nCLIENT\r\n$5\r\nREPLY\r\n$2\r\nON\r\n*1\r\n$4\r\nPING\r\n",
);
/// The same of one that is answered aloud.
const ALOUD: (&[u8], &[u8]) = (b"*1\r\n$5\r\nMULTI\r\n", b"*1\r\n$4\r\nEXEC\r\n");
/// Where the commands begin: behind the longer of the two beginnings.
const START: usize = QUIET.0.len();

/// See the module.
#[derive(Debug)]
pub(super) struct Commands {
    bytes: Vec<u8>,
    /// Where they end; what is behind was put there for a transaction.
    end: usize,
    count: usize,
}

impl Default for Commands {
    fn default() -> Self {
        Self { bytes: QUIET.0.to_vec(), end: START, count: 0 }
    }
}

impl Commands {
    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Adds the command that `write` writes, unless that fails.
    pub(super) fn push<E>(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.bytes.truncate(self.end);
        write(&mut self.bytes)?;
        self.end = self.bytes.len();
        self.count += 1;
        Ok(())
    }

    /// The same room without commands; nothing if it is more than should be kept.
    pub(super) fn emptied(mut self) -> Option<Self> {
        self.bytes.truncate(START);
        (self.bytes.capacity() <= KEPT_BYTES).then_some(Self { end: START, count: 0, ..self })
    }

    /// The commands alone.
    pub(super) fn alone(&self) -> &[u8] {
        &self.bytes[START..self.end]
    }

    /// The commands as a transaction.
    pub(super) fn aloud(&mut self) -> &[u8] {
        self.between(ALOUD)
    }

    /// The commands as a quiet transaction.
    pub(super) fn quiet(&mut self) -> &[u8] {
        self.between(QUIET)
    }

    fn between(&mut self, (before, after): (&[u8], &[u8])) -> &[u8] {
        let start = START - before.len();
        self.bytes[start..START].copy_from_slice(before);
        self.bytes.truncate(self.end);
        self.bytes.extend_from_slice(after);
        &self.bytes[start..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_put_into_transactions_of_either_kind_again_and_again() {
        let mut commands = Commands::default();
        for round in 0..2 {
            for text in [b"a", b"b"] {
                let put = |bytes: &mut Vec<u8>| {
                    bytes.extend_from_slice(text);
                    Ok::<_, ()>(())
                };
                commands.push(put).unwrap();
                let refused = commands.push(|bytes| {
                    bytes.extend_from_slice(b"half a command");
                    Err(round)
                });
                assert_eq!(refused, Err(round));
            }
            for _ in 0..2 {
                assert_eq!((commands.alone(), commands.count()), (&b"ab"[..], 2));
                assert_eq!(commands.aloud(), [ALOUD.0, b"ab", ALOUD.1].concat());
                assert_eq!(commands.quiet(), [QUIET.0, b"ab", QUIET.1].concat());
            }
            commands = commands.emptied().unwrap();
            assert_eq!((commands.alone(), commands.count()), (&b""[..], 0));
        }
        let put = |bytes: &mut Vec<u8>| {
            bytes.reserve(KEPT_BYTES);
            Ok::<_, ()>(())
        };
        commands.push(put).unwrap();
        assert!(commands.emptied().is_none());
    }
}
