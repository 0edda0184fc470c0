//! The streams that take the events: looked for at connect, and made where the operator named one.

use async_nats::jetstream::context::{
    AccountErrorKind, Context, CreateStreamErrorKind, GetStreamByNameErrorKind, GetStreamErrorKind,
};
use async_nats::jetstream::stream::{Config, StorageType};
use async_nats::jetstream::{self, ErrorCode};

use super::acks::{Failure, is_transient};
use super::subject::{Subjects, covers};
use crate::bus::ConnectError;
use crate::retry::Outcome;

const NO_JETSTREAM: &str =
    "JetStream is not enabled; start the server with it, or give --nats-mode core";

/// Checks that `JetStream` is there and takes the subjects; gives what will not work.
pub(super) async fn prepare(
    context: &Context,
    stream: Option<&str>,
    subjects: &Subjects,
) -> Result<Vec<String>, ConnectError> {
    match context.query_account().await.map_err(|error| (error.kind(), error.to_string())) {
        Ok(_) => {}
        Err((AccountErrorKind::JetStreamUnavailable, _)) => {
            return Err(ConnectError::permanent(NO_JETSTREAM));
        }
        Err((AccountErrorKind::JetStream(error), _)) => return Err(refused(&error)),
        Err((_, reason)) => return Err(ConnectError::transient(format!("JetStream: {reason}"))),
    }
    match stream {
        Some(name) => get_or_create(context, name, subjects).await,
        None => Ok(find(context, subjects).await),
    }
}

async fn get_or_create(
    context: &Context,
    name: &str,
    subjects: &Subjects,
) -> Result<Vec<String>, ConnectError> {
    let patterns = subjects.patterns();
    let taken = match context.get_stream(name).await {
        Ok(stream) => stream.cached_info().config.subjects.clone(),
        Err(error) => match error.kind() {
            GetStreamErrorKind::JetStream(error) if is_not_found(&error) => {
                return create(context, name, patterns).await;
            }
            GetStreamErrorKind::JetStream(error) => return Err(refused(&error)),
            _ => return Err(ConnectError::transient(format!("stream `{name}`: {error}"))),
        },
    };
    let is_taken = |pattern: &&String| taken.iter().any(|outer| covers(outer, pattern));
    let missing = patterns.iter().filter(|pattern| !is_taken(pattern));
    Ok(missing
        .map(|pattern| {
            format!("the stream `{name}` does not take `{pattern}`; add it to its subjects")
        })
        .collect())
}

async fn create(
    context: &Context,
    name: &str,
    subjects: Vec<String>,
) -> Result<Vec<String>, ConnectError> {
    let (name, storage) = (name.to_owned(), StorageType::File);
    let config = Config { name, subjects, storage, ..Config::default() };
    match context.create_stream(config).await {
        Ok(_) => Ok(Vec::new()),
        Err(error) => match error.kind() {
            // Another process was faster.
            CreateStreamErrorKind::JetStream(error)
                if error.error_code() == ErrorCode::STREAM_NAME_EXIST =>
            {
                Ok(Vec::new())
            }
            CreateStreamErrorKind::JetStream(error) => Err(refused(&error)),
            _ => Err(ConnectError::transient(format!("the stream cannot be made: {error}"))),
        },
    }
}

/// Without a stream's name all that can be done is to tell.
async fn find(context: &Context, subjects: &Subjects) -> Vec<String> {
    let mut warnings = Vec::new();
    for pattern in subjects.patterns() {
        if let Err(error) = context.stream_by_subject(pattern.as_str()).await
            && matches!(error.kind(), GetStreamByNameErrorKind::NotFound)
        {
            warnings.push(no_stream(&pattern));
        }
    }
    warnings
}

/// Why nobody answered for a message: is there no stream, or does it lack a leader just now?
pub(super) async fn explain(
    client: &async_nats::Client,
    stream: Option<&str>,
    subject: &str,
) -> Failure {
    let context = jetstream::new(client.clone());
    let is_missing = match context.stream_by_subject(subject).await {
        Ok(_) => false,
        Err(error) => matches!(error.kind(), GetStreamByNameErrorKind::NotFound),
    };
    // A stream that was deleted is made again at the next connect.
    if is_missing && let Some(name) = stream {
        let found = context.get_stream(name).await.map_err(|error| error.kind());
        if matches!(found, Err(GetStreamErrorKind::JetStream(error)) if is_not_found(&error)) {
            return Failure::NoStream;
        }
    }
    Failure::Outcome(if is_missing {
        Outcome::Permanent(no_stream(subject))
    } else {
        Outcome::Transient(format!("the stream of `{subject}` does not answer"))
    })
}

fn no_stream(subject: &str) -> String {
    format!("no stream takes `{subject}`; make one, or name one with --nats-stream")
}

fn is_not_found(error: &jetstream::Error) -> bool {
    error.error_code() == ErrorCode::STREAM_NOT_FOUND
}

fn refused(error: &jetstream::Error) -> ConnectError {
    let reason = format!("JetStream: {error}");
    ConnectError { is_permanent: !is_transient(error.code()), reason }
}
