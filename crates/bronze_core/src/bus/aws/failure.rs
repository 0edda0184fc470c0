//! What an error of AWS means, by its code, or where that is unknown by its HTTP status.
//!
//! Errors about keys show their code alone: texts about a wrong signature quote the signed request,
//! and with it the session token.

use std::error::Error;

use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;

use super::Service;
use crate::retry::Outcome;

/// How much of a text of AWS is shown.
const SHOWN: usize = 300;

/// An error of AWS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) kind: FailureKind,
    /// What went wrong and what to do; holds no secret.
    pub(crate) reason: String,
}

/// What an error means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureKind {
    /// It may go away by itself: throttled, broken, not reachable, too slow.
    Transient,
    /// The destination is not there.
    NotFound,
    /// The keys may not do this.
    Denied,
    /// The keys are wrong.
    KeysRefused,
    /// The keys were right once.
    KeysExpired,
    /// AWS will never take this.
    Refused,
}

impl Failure {
    /// Reads an error of a whole request.
    pub(crate) fn of<E>(service: &Service, error: &SdkError<E, HttpResponse>) -> Self
    where
        E: ProvideErrorMetadata + Error + 'static,
    {
        let status = error.raw_response().map(|response| response.status().as_u16());
        match error {
            SdkError::ServiceError(context) => {
                let error = context.err();
                Self::of_code(service, error.code(), error.message(), status)
            }
            SdkError::ResponseError(_) => Self {
                kind: kind_of_status(status),
                reason: format!("the answer is none of AWS's: {}", full_text(error)),
            },
            SdkError::ConstructionFailure(_) => {
                Self { kind: FailureKind::Refused, reason: full_text(error) }
            }
            _ => Self { kind: FailureKind::Transient, reason: full_text(error) },
        }
    }

    fn of_code(
        service: &Service,
        code: Option<&str>,
        message: Option<&str>,
        status: Option<u16>,
    ) -> Self {
        let kind = code.and_then(kind_of_code).unwrap_or_else(|| kind_of_status(status));
        let name = match (code, status) {
            (Some(code), _) => code.to_owned(),
            (None, Some(status)) => format!("HTTP status {status}"),
            (None, None) => "an error without a code".to_owned(),
        };
        Self { kind, reason: reason(service, kind, &name, message) }
    }

    /// What it means for an event.
    pub(crate) fn into_outcome(self) -> Outcome {
        match self.kind {
            FailureKind::Transient => Outcome::Transient(self.reason),
            _ => Outcome::Permanent(self.reason),
        }
    }
}

/// What became of one entry of a request that AWS failed, where `is_ours` says whose fault it was.
///
/// A code that is not known, of a fault that is not ours, is worth another try: the dispatcher gives
/// up in time.
pub(crate) fn outcome_of_entry(
    service: &Service,
    code: &str,
    message: Option<&str>,
    is_ours: bool,
) -> Outcome {
    let unknown = if is_ours { FailureKind::Refused } else { FailureKind::Transient };
    let kind = kind_of_code(code).unwrap_or(unknown);
    Failure { kind, reason: reason(service, kind, code, message) }.into_outcome()
}

fn reason(service: &Service, kind: FailureKind, name: &str, message: Option<&str>) -> String {
    let Service { prefix, destination_flags, action } = service;
    let said = match message.and_then(|message| message.trim().lines().next()) {
        Some(line) if !line.is_empty() => format!("{name}: {}", cut(line)),
        _ => name.to_owned(),
    };
    match kind {
        FailureKind::Transient | FailureKind::Refused => said,
        FailureKind::NotFound => {
            format!("{said}; create it, or correct {destination_flags} or {prefix}-region")
        }
        FailureKind::Denied => format!("{said}; allow {action} to the keys"),
        FailureKind::KeysRefused => format!(
            "{name}: AWS does not take the keys; check {prefix}-access-key-id, \
             {prefix}-secret-access-key and {prefix}-session-token, or those of the default chain, \
             and this machine's clock"
        ),
        FailureKind::KeysExpired => format!(
            "{name}: the keys have expired; give new {prefix}-access-key-id, \
             {prefix}-secret-access-key and {prefix}-session-token, or renew those of the default \
             chain"
        ),
    }
}

fn cut(line: &str) -> &str {
    line.char_indices().nth(SHOWN).map_or(line, |(end, _)| &line[..end])
}

// Which errors are transient

fn kind_of_status(status: Option<u16>) -> FailureKind {
    match status {
        Some(401 | 403) => FailureKind::Denied,
        Some(400..=499) if !matches!(status, Some(408 | 429)) => FailureKind::Refused,
        _ => FailureKind::Transient,
    }
}

/// The meaning of a code; services write the same one with and without a name space before it and
/// `Exception` behind it.
fn kind_of_code(code: &str) -> Option<FailureKind> {
    let name = code.rsplit(['#', '.']).next().unwrap_or(code).to_ascii_lowercase();
    let name = name.strip_suffix("exception").unwrap_or(&name);
    match name {
        name if name.contains("throttl") => Some(FailureKind::Transient),
        "provisionedthroughputexceeded"
        | "limitexceeded"
        | "requestlimitexceeded"
        | "toomanyrequests"
        | "slowdown"
        | "overlimit"
        | "resourceinuse"
        | "internalfailure"
        | "internalerror"
        | "internalservererror"
        | "serviceunavailable"
        | "requesttimeout" => Some(FailureKind::Transient),
        "resourcenotfound" | "nonexistentqueue" | "queuedoesnotexist" => {
            Some(FailureKind::NotFound)
        }
        "accessdenied" | "authorizationerror" | "notauthorized" | "optinrequired"
        | "kmsaccessdenied" | "kmsoptinrequired" => Some(FailureKind::Denied),
        "unrecognizedclient"
        | "invalidsignature"
        | "signaturedoesnotmatch"
        | "incompletesignature"
        | "invalidclienttokenid"
        | "invalidaccesskeyid"
        | "invalidtoken"
        | "missingauthenticationtoken"
        | "authfailure"
        | "invalidsecurity"
        | "requesttimetooskewed" => Some(FailureKind::KeysRefused),
        "expiredtoken" | "tokenrefreshrequired" | "requestexpired" => {
            Some(FailureKind::KeysExpired)
        }
        "validation"
        | "invalidargument"
        | "invalidparametervalue"
        | "invalidmessagecontents"
        | "invalidaddress"
        | "unsupportedoperation"
        | "batchrequesttoolong"
        | "kmsdisabled"
        | "kmsinvalidstate"
        | "kmsinvalidkeyusage"
        | "kmsnotfound" => Some(FailureKind::Refused),
        _ => None,
    }
}

/// An error with what caused it, in one line; each text once. Never its `Debug` output, which may
/// hold the request.
pub(crate) fn full_text(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.ends_with(&said) {
            text = format!("{text}: {said}");
        }
        cause = error.source();
    }
    let line = text.lines().collect::<Vec<_>>().join(" ");
    cut(&line).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVICE: Service = Service {
        prefix: "--kinesis",
        destination_flags: "--kinesis-stream and --kinesis-stream-routing",
        action: "kinesis:PutRecords",
    };

    fn failure(code: &str, status: u16) -> Failure {
        Failure::of_code(&SERVICE, Some(code), Some("said AWS\nhush"), Some(status))
    }

    #[test]
    fn codes_have_their_meaning_however_they_are_written() {
        for (code, kind) in [
            ("ProvisionedThroughputExceededException", FailureKind::Transient),
            ("KMSThrottlingException", FailureKind::Transient),
            ("RequestThrottled", FailureKind::Transient),
            ("InternalFailure", FailureKind::Transient),
            ("ResourceNotFoundException", FailureKind::NotFound),
            ("AWS.SimpleQueueService.NonExistentQueue", FailureKind::NotFound),
            ("com.amazonaws.sqs#QueueDoesNotExist", FailureKind::NotFound),
            ("AccessDeniedException", FailureKind::Denied),
            ("UnrecognizedClientException", FailureKind::KeysRefused),
            ("InvalidSignatureException", FailureKind::KeysRefused),
            ("ExpiredTokenException", FailureKind::KeysExpired),
            ("ValidationException", FailureKind::Refused),
            ("SomethingNewException", FailureKind::Refused),
        ] {
            assert_eq!(failure(code, 400).kind, kind, "{code}");
        }
    }

    #[test]
    fn an_unknown_code_is_judged_by_its_status() {
        for (status, kind) in [
            (Some(400), FailureKind::Refused),
            (Some(403), FailureKind::Denied),
            (Some(408), FailureKind::Transient),
            (Some(429), FailureKind::Transient),
            (Some(500), FailureKind::Transient),
            (None, FailureKind::Transient),
        ] {
            assert_eq!(Failure::of_code(&SERVICE, None, None, status).kind, kind, "{status:?}");
        }
        let failure = Failure::of_code(&SERVICE, None, None, Some(503));
        assert_eq!(failure.into_outcome(), Outcome::Transient("HTTP status 503".to_owned()));
    }

    #[test]
    fn reasons_say_what_to_do_and_nothing_of_a_signed_request() {
        assert_eq!(
            failure("ResourceNotFoundException", 400).reason,
            "ResourceNotFoundException: said AWS; create it, or correct --kinesis-stream and \
             --kinesis-stream-routing or --kinesis-region"
        );
        assert_eq!(
            failure("AccessDeniedException", 400).reason,
            "AccessDeniedException: said AWS; allow kinesis:PutRecords to the keys"
        );
        assert_eq!(
            failure("InvalidSignatureException", 400).reason,
            "InvalidSignatureException: AWS does not take the keys; check \
             --kinesis-access-key-id, --kinesis-secret-access-key and --kinesis-session-token, or \
             those of the default chain, and this machine's clock"
        );
        assert!(failure("ExpiredTokenException", 400).reason.contains("have expired; give new"));
    }

    #[test]
    fn an_entry_is_judged_by_its_code_and_then_by_whose_fault_it_is() {
        let outcome = |code, is_ours| outcome_of_entry(&SERVICE, code, Some("why"), is_ours);
        let transient = |text: &str| Outcome::Transient(text.to_owned());
        let permanent = |text: &str| Outcome::Permanent(text.to_owned());
        assert_eq!(outcome("RequestThrottled", true), transient("RequestThrottled: why"));
        assert_eq!(outcome("Odd", false), transient("Odd: why"));
        assert_eq!(outcome("Odd", true), permanent("Odd: why"));
        assert_eq!(
            outcome("InvalidParameterValue", false),
            permanent("InvalidParameterValue: why")
        );
    }
}
