//! Failures in words, and which of librdkafka's are transient.
//!
//! librdkafka tries events again by itself, in order, until the delivery time-out; so what it reports
//! as failed has failed. Only what was taken out of its hands may be sent again.

use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use crate::retry::Outcome;

/// What became of an event that librdkafka did not deliver.
pub(super) fn outcome_of(error: &KafkaError, topic: &str, size: usize) -> Outcome {
    let Some(code) = error.rdkafka_error_code() else {
        return Outcome::Permanent(format!("Kafka topic `{topic}`: {error}"));
    };
    match code {
        RDKafkaErrorCode::PurgeQueue
        | RDKafkaErrorCode::PurgeInflight
        | RDKafkaErrorCode::BrokerDestroy
        | RDKafkaErrorCode::DestroyBroker
        | RDKafkaErrorCode::Fatal => Outcome::Transient(format!("Kafka topic `{topic}`: {code}")),
        code => Outcome::Permanent(reason_of(code, topic, size)),
    }
}

fn reason_of(code: RDKafkaErrorCode, topic: &str, size: usize) -> String {
    match code {
        RDKafkaErrorCode::UnknownTopic
        | RDKafkaErrorCode::UnknownTopicOrPartition
        | RDKafkaErrorCode::UnknownPartition => missing_topic(topic),
        RDKafkaErrorCode::InvalidTopic => refused_name(topic),
        RDKafkaErrorCode::TopicAuthorizationFailed => not_allowed(topic),
        RDKafkaErrorCode::MessageSizeTooLarge => batch_too_large(topic, size),
        RDKafkaErrorCode::MessageTimedOut => format!(
            "Kafka topic `{topic}` did not acknowledge the event within the delivery time-out"
        ),
        code => format!("Kafka topic `{topic}`: {code}"),
    }
}

/// There is no such topic.
pub(super) fn missing_topic(topic: &str) -> String {
    format!("Kafka topic `{topic}` does not exist; create it, or correct its name")
}

/// The brokers do not like a topic's name.
pub(super) fn refused_name(topic: &str) -> String {
    format!("Kafka refuses the name of topic `{topic}`")
}

/// The user may not write to a topic.
pub(super) fn not_allowed(topic: &str) -> String {
    format!("writing to Kafka topic `{topic}` is not allowed; grant this user WRITE on it")
}

/// A topic does not take a batch with an event of so many bytes.
pub(super) fn batch_too_large(topic: &str, size: usize) -> String {
    format!(
        "Kafka topic `{topic}` refuses the batch that held this event of {size} bytes as too \
         large; raise the topic's max.message.bytes, or set `batch.size` of --kafka-config to it"
    )
}

/// The refusal of an event that is larger than librdkafka sends.
pub(super) fn too_large(size: usize, limit: usize) -> String {
    format!(
        "the event takes {size} bytes with its key and headers, more than `message.max.bytes` \
         ({limit}); raise it with --kafka-config and on the topic"
    )
}

/// Whether a producer that failed for good failed because it may not do what it was made for.
pub(super) fn is_authorization(code: RDKafkaErrorCode) -> bool {
    matches!(
        code,
        RDKafkaErrorCode::ClusterAuthorizationFailed
            | RDKafkaErrorCode::TopicAuthorizationFailed
            | RDKafkaErrorCode::TransactionalIdAuthorizationFailed
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_purged_may_be_sent_again() {
        let of = |code| outcome_of(&KafkaError::MessageProduction(code), "events", 7);
        assert!(matches!(of(RDKafkaErrorCode::PurgeQueue), Outcome::Transient(_)));
        assert!(matches!(of(RDKafkaErrorCode::PurgeInflight), Outcome::Transient(_)));
        let unknown = "Kafka topic `events` does not exist; create it, or correct its name";
        assert_eq!(of(RDKafkaErrorCode::UnknownTopic), Outcome::Permanent(unknown.to_owned()));
        for (code, part) in [
            (RDKafkaErrorCode::TopicAuthorizationFailed, "is not allowed"),
            (RDKafkaErrorCode::MessageSizeTooLarge, "7 bytes as too large"),
            (RDKafkaErrorCode::MessageTimedOut, "within the delivery time-out"),
            (RDKafkaErrorCode::InvalidRecord, "events"),
        ] {
            let Outcome::Permanent(reason) = of(code) else { panic!("{code:?} is permanent") };
            assert!(reason.contains(part), "{reason}");
        }
    }
}
