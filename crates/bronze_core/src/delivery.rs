//! How events are delivered, the same for every bus.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use crate::config_error::{ConfigError, ConfigFault};
use crate::queue::QueueLimits;
use crate::retry::RetryPolicy;

/// What happens to new events when memory and spill are full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Overflow {
    /// The producer waits.
    #[default]
    Block,
    /// They are given up, and counted.
    Drop,
}

/// How events are delivered.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DeliveryOptions {
    /// How long a producer waits for room in memory before its events go to the spill.
    pub max_block_ms: u64,
    /// What happens when the spill is full too.
    pub overflow: Overflow,
    /// Megabytes of encoded events that a bus holds in memory.
    pub max_memory_mb: u64,
    /// Below which directory events wait on disk; nothing spills without it.
    pub spill_dir: Option<PathBuf>,
    /// Megabytes that wait on disk for a bus.
    pub spill_max_mb: u64,
    /// Below which directory the dead-letter files are.
    pub dead_letter_dir: PathBuf,
    /// How long after its first sending an event is given up.
    pub delivery_timeout_ms: u64,
    /// The longest wait before the first retry.
    pub retry_backoff_ms: u64,
    /// The longest wait before any retry.
    pub retry_backoff_max_ms: u64,
}

impl Default for DeliveryOptions {
    fn default() -> Self {
        Self {
            max_block_ms: 1_000,
            overflow: Overflow::Block,
            max_memory_mb: 128,
            spill_dir: None,
            spill_max_mb: 10_240,
            dead_letter_dir: PathBuf::from("."),
            // Longer than an outage that people repair: until then events wait, in order.
            delivery_timeout_ms: 3_600_000,
            retry_backoff_ms: 50,
            retry_backoff_max_ms: 10_000,
        }
    }
}

impl DeliveryOptions {
    /// Checks the options, without I/O.
    pub fn validate(&self) -> Result<(), ConfigError> {
        const DAY_MS: u64 = 86_400_000;
        let range = |flag: &str, value: u64, least: u64, most: u64| match value {
            value if (least..=most).contains(&value) => Ok(()),
            value => Err(ConfigFault::out_of_range(value, least, most).of(flag)),
        };
        range("--max-block-ms", self.max_block_ms, 0, DAY_MS)?;
        range("--max-memory-mb", self.max_memory_mb, 1, 1 << 20)?;
        range("--spill-max-mb", self.spill_max_mb, 1, 1 << 30)?;
        range("--delivery-timeout-ms", self.delivery_timeout_ms, 1, 30 * DAY_MS)?;
        range("--retry-backoff-ms", self.retry_backoff_ms, 1, DAY_MS)?;
        range("--retry-backoff-max-ms", self.retry_backoff_max_ms, 1, DAY_MS)?;
        if self.retry_backoff_ms > self.retry_backoff_max_ms {
            let (first, most) = (self.retry_backoff_ms, self.retry_backoff_max_ms);
            return Err(ConfigFault::contradiction(
                "--retry-backoff-max-ms",
                format!("the first wait of {first} ms is longer than the longest of {most} ms"),
                "make it shorter, or the other longer",
            )
            .of("--retry-backoff-ms"));
        }
        Ok(())
    }

    pub(crate) fn max_block(&self) -> Duration {
        Duration::from_millis(self.max_block_ms)
    }

    pub(crate) fn retry_policy(&self) -> RetryPolicy {
        RetryPolicy {
            initial_backoff: Duration::from_millis(self.retry_backoff_ms),
            max_backoff: Duration::from_millis(self.retry_backoff_max_ms),
            delivery_timeout: Duration::from_millis(self.delivery_timeout_ms),
        }
    }

    /// Half of the memory is for what waits to be looked at.
    pub(crate) fn queue_limits(&self) -> QueueLimits {
        QueueLimits { bytes: self.max_memory_mb * (1 << 20) / 2, ..QueueLimits::default() }
    }

    /// The other half is for what is being sent.
    pub(crate) fn window_bytes(&self) -> u64 {
        self.max_memory_mb * (1 << 20) / 2
    }

    pub(crate) fn spill_max_bytes(&self) -> u64 {
        self.spill_max_mb * (1 << 20)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_without_sense_are_refused_by_flag() {
        assert_eq!(DeliveryOptions::default().validate(), Ok(()));
        let refusal = |change: &dyn Fn(&mut DeliveryOptions)| {
            let mut options = DeliveryOptions::default();
            change(&mut options);
            options.validate().unwrap_err().to_string()
        };
        assert_eq!(
            refusal(&|options| options.max_memory_mb = 0),
            "--max-memory-mb: 0 is out of range; give 1 to 1048576"
        );
        assert_eq!(
            refusal(&|options| options.retry_backoff_ms = 20_000),
            "--retry-backoff-ms: it contradicts --retry-backoff-max-ms: the first wait of 20000 ms \
             is longer than the longest of 10000 ms; make it shorter, or the other longer"
        );
    }
}
