//! The publisher: any number of buses, each with its own intake and dispatcher, fed with the same
//! batches.
//!
//! Everything that can be refused is refused before anything is started, and nothing waits for a
//! broker: a bus that is not there yet is connected to in the background while its events wait.

use std::path::Path;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{Map, Value};
use thiserror::Error;
use tokio::sync::{oneshot, watch};

use crate::backlog::Backlog;
use crate::bus::{self, BusClient};
use crate::bus_report::{BusCheck, BusLeft, BusStats};
use crate::config_error::{ConfigError, ConfigFault};
use crate::dead_letter::DeadLetterFile;
use crate::delivery::{DeliveryOptions, Overflow};
use crate::dispatcher::{Dispatcher, Left};
use crate::event_batch::EventBatch;
use crate::intake::{Intake, NotAccepted};
use crate::ledger::{Amount, Place};
use crate::notice::{Level, Notices};
use crate::payload_filter::PayloadFilter;
use crate::record_file::RecordFileError;
use crate::runtime::runtime;
use crate::spill::SpillError;

/// Processes that can spill below one directory at once.
const MOST_SPILLS: u32 = 256;
/// How long after its deadline a dispatcher may still be closing its client.
const CLOSE_GRACE: Duration = Duration::from_secs(10);

/// Why a publisher cannot be started.
#[derive(Debug, Error)]
pub enum StartError {
    /// An option cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The spill cannot be used.
    #[error("--spill-dir: {0}")]
    Spill(#[from] SpillError),
    /// There is no runtime.
    #[error("cannot start threads for the buses: {0}")]
    Runtime(#[from] std::io::Error),
}

/// The options of a publisher: those of delivery, and those of each bus by its name.
#[derive(Clone, Debug, Default)]
pub struct PublisherOptions {
    /// How events are delivered.
    pub delivery: DeliveryOptions,
    /// Each bus's name and options.
    pub buses: Vec<(String, Value)>,
}

impl PublisherOptions {
    /// Reads options as a JSON object: `delivery`, and the buses by name.
    pub fn from_json(text: &str) -> Result<Self, ConfigError> {
        let mut object: Map<String, Value> = serde_json::from_str(text)
            .map_err(|error| unreadable("options", &error).of("options"))?;
        let delivery = match object.remove("delivery") {
            Some(delivery) => read_delivery(delivery)?,
            None => DeliveryOptions::default(),
        };
        Ok(Self { delivery, buses: object.into_iter().collect() })
    }

    /// Checks everything that can be without connecting, and does nothing else.
    pub fn validate(self) -> Result<(), ConfigError> {
        self.prepare(&Notices::default()).map(drop)
    }

    /// Checks everything, without I/O.
    fn prepare(self, notices: &Notices) -> Result<Vec<Box<dyn PreparedBus>>, ConfigError> {
        self.delivery.validate()?;
        if self.buses.is_empty() {
            let remedy = format!("give the options of at least one of {}", bus::NAMES.join(", "));
            return Err(ConfigFault::missing(remedy).of("bus"));
        }
        let buses = self.buses.into_iter();
        buses.map(|(name, options)| bus::prepare(&name, options, &self.delivery, notices)).collect()
    }
}

fn read_delivery(delivery: Value) -> Result<DeliveryOptions, ConfigError> {
    if let Some(word @ Value::String(text)) = delivery.get("overflow")
        && Overflow::deserialize(word).is_err()
    {
        let fault = ConfigFault::unusable(text, "is no policy", "give block or drop");
        return Err(fault.of("--overflow"));
    }
    DeliveryOptions::deserialize(delivery)
        .map_err(|error| unreadable("delivery", &error).of("delivery"))
}

/// Text that serde refused; it says what and where, and never a value of a secret's type.
pub(crate) fn unreadable(what: &str, error: &serde_json::Error) -> ConfigFault {
    ConfigFault::unusable(what, format!("cannot be read: {error}"), "write it as documented")
}

/// A bus whose options are good.
pub(crate) trait PreparedBus: Send {
    /// Starts it.
    fn start(self: Box<Self>, delivery: &DeliveryOptions) -> Result<RunningBus, StartError>;

    /// Tries to connect, and lets go again.
    fn check(self: Box<Self>) -> Result<BusCheck, StartError>;
}

/// See [`PreparedBus`].
pub(crate) struct Prepared<B> {
    pub(crate) client: B,
    pub(crate) notices: Notices,
}

impl<B: BusClient> PreparedBus for Prepared<B> {
    fn start(self: Box<Self>, delivery: &DeliveryOptions) -> Result<RunningBus, StartError> {
        let Self { client, notices } = *self;
        let spill = delivery.spill_dir.as_deref();
        let opened =
            spill.map(|directory| open_backlog(directory, B::NAME, delivery)).transpose()?;
        let (backlog, recovered) = opened.unzip();
        let dead_letters =
            DeadLetterFile::new(delivery.dead_letter_dir.join(format!("{}.dead", B::NAME)));
        let filter = client.filter();
        let intake = Intake::new(B::NAME, filter, delivery, backlog, dead_letters, notices);
        let intake = Arc::new(intake);
        for recovered in recovered.into_iter().flatten() {
            note_recovered(&intake, &recovered);
        }
        let (stop, stopped) = watch::channel(None);
        let (done, left) = oneshot::channel();
        let (client, policy) = (Arc::new(client), delivery.retry_policy());
        let window = delivery.window_bytes();
        let dispatcher = Dispatcher::new(client, Arc::clone(&intake), policy, window, stopped);
        runtime()?.spawn(async move {
            let left = dispatcher.run().await;
            // Nobody waits for it where the publisher was dropped without being closed.
            let _ = done.send(left);
        });
        Ok(RunningBus { intake, stop, left: Mutex::new(Leaving::Waiting(left)) })
    }

    fn check(self: Box<Self>) -> Result<BusCheck, StartError> {
        let outcome = runtime()?.block_on(async {
            let outcome = self.client.connect().await;
            self.client.close().await;
            outcome
        });
        Ok(BusCheck { name: B::NAME, outcome })
    }
}

/// Opens the first directory of a bus that no other process uses.
fn open_backlog(
    directory: &Path,
    name: &str,
    delivery: &DeliveryOptions,
) -> Result<(Backlog, [crate::spill::Recovered; 2]), SpillError> {
    let mut number = 1;
    loop {
        let own = match number {
            1 => directory.join(name),
            number => directory.join(format!("{name}-{number}")),
        };
        match Backlog::open(&own, delivery.spill_max_bytes()) {
            Err(SpillError::File(RecordFileError::Locked { .. })) if number < MOST_SPILLS => {
                number += 1;
            }
            opened => return opened,
        }
    }
}

fn note_recovered(intake: &Intake, recovered: &crate::spill::Recovered) {
    if recovered.events > 0 {
        let found = Amount { events: recovered.events, bytes: recovered.bytes };
        intake.ledger.accept(Place::Spill, found);
        let message = format!("{} events of an earlier process wait on disk", recovered.events);
        let fields = vec![("events", recovered.events.to_string())];
        intake.notices.tell(Level::Info, intake.name, "recovered_spill", message, fields);
    }
    for aside in &recovered.set_aside {
        let message = aside.to_string();
        intake.notices.tell(Level::Error, intake.name, "spill_failed", message, Vec::new());
    }
}

enum Leaving {
    Waiting(oneshot::Receiver<Left>),
    Left(Left),
}

/// A bus that was started.
pub(crate) struct RunningBus {
    intake: Arc<Intake>,
    stop: watch::Sender<Option<Instant>>,
    left: Mutex<Leaving>,
}

impl RunningBus {
    /// Stops taking events in, and gives the dispatcher until `deadline`.
    fn stop(&self, deadline: Instant) {
        self.intake.close();
        // The first deadline holds.
        self.stop
            .send_if_modified(|stop| stop.replace(deadline.min(stop.unwrap_or(deadline))) != *stop);
    }

    /// What the bus left; waits for its end.
    fn wait(&self, until: Instant) -> Left {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        if let Leaving::Waiting(receiver) = &mut *left {
            // Looked at again and again: a blocking wait has no end in time, and must not be called from
            // the threads of a runtime.
            let ended = loop {
                match receiver.try_recv() {
                    Ok(ended) => break ended,
                    Err(oneshot::error::TryRecvError::Closed) => break Left::default(),
                    Err(oneshot::error::TryRecvError::Empty) if Instant::now() >= until => {
                        break Left { events: self.intake.ledger.waiting(), kept_in: None };
                    }
                    Err(oneshot::error::TryRecvError::Empty) => {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                }
            };
            *left = Leaving::Left(ended);
        }
        match &*left {
            Leaving::Left(left) => left.clone(),
            Leaving::Waiting(_) => Left::default(),
        }
    }
}

/// Publishes batches of events to buses.
pub struct Publisher {
    buses: Vec<RunningBus>,
    notices: Notices,
}

impl Publisher {
    /// Checks the options, then starts every bus.
    pub fn start(options: PublisherOptions) -> Result<Self, StartError> {
        let notices = Notices::default();
        let delivery = options.delivery.clone();
        let prepared = options.prepare(&notices)?;
        let mut publisher = Self { buses: Vec::with_capacity(prepared.len()), notices };
        for bus in prepared {
            publisher.buses.push(bus.start(&delivery)?);
        }
        Ok(publisher)
    }

    /// A publisher of buses that were started.
    #[cfg(test)]
    pub(crate) fn of_buses(buses: Vec<RunningBus>, notices: Notices) -> Self {
        Self { buses, notices }
    }

    /// Checks the options, then tries to connect to every bus.
    pub fn check(options: PublisherOptions) -> Result<Vec<BusCheck>, StartError> {
        let prepared = options.prepare(&Notices::default())?;
        prepared.into_iter().map(PreparedBus::check).collect()
    }

    /// What [`Self::check`] found, as a JSON list.
    pub fn check_json(options: PublisherOptions) -> Result<String, StartError> {
        let checks = Self::check(options)?;
        Ok(checks.iter().map(BusCheck::to_json).collect::<Value>().to_string())
    }

    /// The cases that at least one bus publishes: nothing else needs to be encoded.
    #[must_use]
    pub fn filter(&self) -> PayloadFilter {
        let filters = self.buses.iter().map(|bus| bus.intake.filter());
        filters.reduce(PayloadFilter::union).unwrap_or_default()
    }

    /// Hands a batch to every bus. Returns how many of its events were accepted by the bus that
    /// publishes the most of them. `keep_waiting` is asked while a bus has no room anywhere.
    ///
    /// An error means that a bus did not accept it; those before it may have.
    pub fn publish(
        &self,
        batch: &EventBatch,
        mut keep_waiting: impl FnMut() -> bool,
    ) -> Result<u64, NotAccepted> {
        let mut most = 0;
        for bus in &self.buses {
            most = most.max(bus.intake.accept(batch, &mut keep_waiting)?);
        }
        Ok(most)
    }

    /// The same for tasks of the runtime: no thread is kept while there is no room. Given up midway,
    /// the batch may have been accepted by some of the buses.
    pub async fn publish_async(&self, batch: &EventBatch) -> Result<u64, NotAccepted> {
        let mut most = 0;
        for bus in &self.buses {
            most = most.max(bus.intake.accept_async(batch).await?);
        }
        Ok(most)
    }

    /// Waits until nothing waits in any bus; says whether that came true in time. `keep_waiting` is
    /// asked now and then.
    pub fn flush(&self, patience: Duration, mut keep_waiting: impl FnMut() -> bool) -> bool {
        let now = Instant::now();
        let until = now.checked_add(patience).unwrap_or(now + Duration::from_hours(24 * 365));
        self.buses.iter().all(|bus| bus.intake.flush(until, &mut keep_waiting))
    }

    /// Each bus at this moment, as JSON by name.
    #[must_use]
    pub fn stats_json(&self) -> String {
        let stats = self.stats().into_iter();
        Value::Object(stats.map(|bus| (bus.name.to_owned(), bus.to_json())).collect()).to_string()
    }

    /// Each bus at this moment.
    #[must_use]
    pub fn stats(&self) -> Vec<BusStats> {
        let of_bus = |bus: &RunningBus| BusStats {
            name: bus.intake.name,
            ledger: bus.intake.stats(),
            memory_limit_bytes: bus.intake.limits.0,
            spill_limit_bytes: bus.intake.limits.1,
            is_connected: bus.intake.is_connected.load(SeqCst),
            dead_letter_file: bus.intake.dead_letter_file(),
        };
        self.buses.iter().map(of_bus).collect()
    }

    /// Stops: takes nothing in any more, delivers what it can within `patience`, and keeps the rest.
    /// Closing again gives the same answer.
    #[must_use]
    pub fn close(&self, patience: Duration) -> Vec<BusLeft> {
        let now = Instant::now();
        let deadline = now.checked_add(patience).unwrap_or(now + Duration::from_hours(24));
        for bus in &self.buses {
            bus.stop(deadline);
        }
        let of_bus = |bus: &RunningBus| BusLeft {
            name: bus.intake.name,
            left: bus.wait(deadline + CLOSE_GRACE),
        };
        let left = self.buses.iter().map(of_bus).collect();
        self.notices.close();
        left
    }

    /// What [`Self::close`] left, as JSON by name.
    #[must_use]
    pub fn close_json(&self, patience: Duration) -> String {
        let left = self.close(patience).into_iter();
        Value::Object(left.map(|bus| (bus.name.to_owned(), bus.to_json())).collect()).to_string()
    }

    /// What operators should know.
    #[must_use]
    pub fn notices(&self) -> &Notices {
        &self.notices
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        for bus in &self.buses {
            bus.stop(Instant::now());
        }
        self.notices.close();
    }
}
