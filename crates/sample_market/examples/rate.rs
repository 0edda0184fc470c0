//! How fast the sample market makes messages: `cargo run --release -p sample_market --example rate`.

use std::time::Instant;

use market_data::Timestamp;
use sample_market::{SampleError, SampleMarket, SampleOptions};

/// Time that this thread had a processor, where the system says it: other work on the machine does
/// not count in it.
fn processor_seconds(started: Instant) -> f64 {
    std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|text| text.split(' ').next()?.parse::<f64>().ok())
        .map_or_else(|| started.elapsed().as_secs_f64(), |nanoseconds| nanoseconds / 1e9)
}

#[expect(clippy::print_stdout, reason = "this is what it is for")]
#[expect(clippy::cast_precision_loss, reason = "counts of lines and bytes are small")]
fn main() -> Result<(), SampleError> {
    let started = Instant::now();
    for (rate, levels) in [(100, 300), (5_000, 300), (5_000, 10_000)] {
        let options = SampleOptions {
            messages_per_second: rate,
            book_levels: levels,
            ..SampleOptions::default()
        };
        let market = SampleMarket::new(options);
        for exchange in SampleMarket::exchanges() {
            let mut out = Vec::new();
            let (mut lines, mut bytes, mut seconds) = (0, 0, 0.0);
            for minute in 0..(20_000 / rate).clamp(4, 60) {
                out.clear();
                let minute = Timestamp::of_minute(2020, 2, 1, 0, i64::from(minute));
                let before = processor_seconds(started);
                market.minute(exchange, minute, &[], &mut out)?;
                seconds += processor_seconds(started) - before;
                bytes += out.len();
                lines += out.split(|byte| *byte == b'\n').count() - 1;
            }
            let setting = format!("{rate} messages/s, {levels} levels");
            println!(
                "{exchange:<16} {setting:<32} {lines:>9} lines {:>6.2} million/s {:>7.0} MB/s",
                lines as f64 / seconds / 1e6,
                bytes as f64 / seconds / 1e6,
            );
        }
    }
    Ok(())
}
