//! Apache Kafka.
//!
//! There are two ways to it. The direct one writes Kafka's protocol itself and is several times
//! cheaper; it is taken for what most people publish with. librdkafka is for everything else, and for
//! whoever asks for it. Both put keys where the Java client does, both keep the order of a key through
//! retries, and both are idempotent unless told otherwise. An event whose key renders to nothing has
//! no key: it goes to any partition, and keeps no order with others.

mod direct;
mod failure;
mod librdkafka;
mod options;
mod properties;
mod record;
mod turns;

use std::future::Future;
use std::sync::Arc;

use self::direct::Direct;
use self::failure::too_large;
use self::librdkafka::Librdkafka;
use self::options::Settings;
use self::turns::Turns;
use super::{Address, Answer, BusClient, ConnectError, Connected, Request, RequestLimits};
use crate::config_error::ConfigError;
use crate::delivery::DeliveryOptions;
use crate::event_view::EventView;
use crate::notice::{Level, Notices};
use crate::payload_case::PayloadCase;
use crate::payload_filter::PayloadFilter;

pub use self::options::KafkaOptions;
pub use self::properties::{Properties, Word};

/// How the bus is called.
const NAME: &str = "kafka";

// Limits.

/// What a record takes beside its event, about: key, headers, and how long each is.
const RECORD_OVERHEAD: usize = 100;

/// A client of a Kafka cluster.
#[derive(Debug)]
pub struct Kafka {
    settings: Settings,
    turns: Turns,
    way: Way,
}

/// How events get there.
#[derive(Debug)]
enum Way {
    Direct(Direct),
    Librdkafka(Librdkafka),
}

impl BusClient for Kafka {
    const NAME: &'static str = NAME;

    type Options = KafkaOptions;

    fn validate(
        options: KafkaOptions,
        delivery: &DeliveryOptions,
        notices: &Notices,
    ) -> Result<Self, ConfigError> {
        let settings = options.settings(delivery)?;
        if settings.config.get("acks") == Some("0") {
            let text = "acks is 0: events count as acknowledged once they are written, even if no \
                        broker has them";
            notices.tell(Level::Warning, NAME, "configuration", text, Vec::new());
        }
        let topics = KafkaOptions::used_topics(&settings);
        let way = match &settings.direct {
            Some(direct) => {
                let destinations = settings.route.destinations().len();
                Way::Direct(Direct::new(direct.clone(), topics, destinations))
            }
            None => Way::Librdkafka(Librdkafka::new(topics, notices.clone())),
        };
        Ok(Self { settings, turns: Turns::default(), way })
    }

    fn filter(&self) -> PayloadFilter {
        self.settings.filter
    }

    fn limits(&self) -> RequestLimits {
        match &self.way {
            Way::Direct(direct) => direct.limits(),
            Way::Librdkafka(_) => Librdkafka::limits(),
        }
    }

    fn address(
        &self,
        event: &EventView<'_>,
        bytes: &[u8],
        wants_key: bool,
        address: &mut Address,
    ) -> Result<(), String> {
        address.destination = self.settings.route.index(event.case());
        address.size = bytes.len() + RECORD_OVERHEAD;
        if wants_key {
            self.settings.form.key.render(event, &mut address.key);
        }
        // Key and headers are measured only where they can matter.
        if bytes.len() > self.settings.largest / 2 {
            let size = bytes.len() + self.settings.form.size(event);
            if size > self.settings.largest {
                return Err(too_large(size, self.settings.largest));
            }
        }
        Ok(())
    }

    fn address_unread(&self, case: PayloadCase, bytes: usize) -> Option<(usize, usize)> {
        let fits = bytes <= self.settings.largest / 2;
        fits.then(|| (self.settings.route.index(case), bytes + RECORD_OVERHEAD))
    }

    async fn connect(&self) -> Result<Connected, ConnectError> {
        match &self.way {
            Way::Direct(direct) => direct.connect().await,
            Way::Librdkafka(librdkafka) => librdkafka.connect(&self.settings).await,
        }
    }

    fn send(self: Arc<Self>, request: Request) -> impl Future<Output = Answer> + Send {
        // Taken now, so that requests go out in the order in which sending is asked for.
        let turn = self.turns.take(&request);
        async move {
            match &self.way {
                Way::Direct(direct) => direct.send(&self.settings, turn, request).await,
                Way::Librdkafka(librdkafka) => librdkafka.send(&self.settings, turn, request).await,
            }
        }
    }

    async fn close(&self) {
        match &self.way {
            Way::Direct(direct) => direct.close(),
            Way::Librdkafka(librdkafka) => librdkafka.close().await,
        }
    }
}

#[cfg(test)]
mod tests;
