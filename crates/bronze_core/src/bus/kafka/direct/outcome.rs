//! Which errors are transient, and what they mean for a batch's sequence.

use kafka_protocol::ResponseError;

use super::super::failure;
use crate::retry::Outcome;

/// What an error of a broker says of the batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// The broker has it from an earlier sending.
    IsThere,
    /// It may be there or not; the same batch may be sent again.
    Unknown,
    /// It is not there, and the broker no longer knows who sends it.
    ForgottenProducer,
    /// It is not there, and smaller ones may be taken.
    TooLarge,
    /// It is not there, and never will be.
    Refused,
}

/// What an error of a broker says of the batch.
pub(super) fn fate_of(error: ResponseError) -> Fate {
    match error {
        ResponseError::DuplicateSequenceNumber => Fate::IsThere,
        ResponseError::OutOfOrderSequenceNumber
        | ResponseError::UnknownProducerId
        | ResponseError::InvalidProducerEpoch
        | ResponseError::InvalidProducerIdMapping
        | ResponseError::ProducerFenced => Fate::ForgottenProducer,
        ResponseError::MessageTooLarge | ResponseError::RecordListTooLarge => Fate::TooLarge,
        // What goes over the network may be damaged there.
        ResponseError::CorruptMessage
        // The broker does not know itself what went wrong.
        | ResponseError::UnknownServerError => Fate::Unknown,
        error if error.is_retriable() => Fate::Unknown,
        _ => Fate::Refused,
    }
}

impl Fate {
    /// What becomes of the events of a batch of so many bytes.
    pub(super) fn outcome(self, error: ResponseError, topic: &str, size: usize) -> Outcome {
        let reason = reason_of(error, topic, size);
        match self {
            Self::IsThere => Outcome::Acknowledged,
            Self::Unknown | Self::ForgottenProducer => Outcome::Transient(reason),
            Self::TooLarge | Self::Refused => Outcome::Permanent(reason),
        }
    }
}

/// An error in words.
pub(super) fn reason_of(error: ResponseError, topic: &str, size: usize) -> String {
    match error {
        ResponseError::UnknownTopicOrPartition => failure::missing_topic(topic),
        ResponseError::InvalidTopicException => failure::refused_name(topic),
        ResponseError::TopicAuthorizationFailed => failure::not_allowed(topic),
        ResponseError::MessageTooLarge | ResponseError::RecordListTooLarge => {
            failure::batch_too_large(topic, size)
        }
        error => format!("Kafka topic `{topic}`: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_be_there_or_come_is_sent_again() {
        let of = |error| fate_of(error).outcome(error, "events", 7);
        for error in [
            ResponseError::NotLeaderOrFollower,
            ResponseError::UnknownTopicOrPartition,
            ResponseError::NotEnoughReplicasAfterAppend,
            ResponseError::RequestTimedOut,
            ResponseError::KafkaStorageError,
            ResponseError::OutOfOrderSequenceNumber,
            ResponseError::UnknownProducerId,
            ResponseError::CoordinatorLoadInProgress,
        ] {
            assert!(matches!(of(error), Outcome::Transient(_)), "{error:?}");
        }
        assert_eq!(of(ResponseError::DuplicateSequenceNumber), Outcome::Acknowledged);
        for (error, part) in [
            (ResponseError::TopicAuthorizationFailed, "is not allowed"),
            (ResponseError::InvalidTopicException, "refuses the name"),
            (ResponseError::MessageTooLarge, "7 bytes as too large"),
            (ResponseError::InvalidRecord, "events"),
            (ResponseError::UnsupportedCompressionType, "events"),
            (ResponseError::ClusterAuthorizationFailed, "events"),
        ] {
            let Outcome::Permanent(reason) = of(error) else { panic!("{error:?} is permanent") };
            assert!(reason.contains(part), "{reason}");
        }
    }
}
