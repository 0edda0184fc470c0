//! Tests that need no server.

use aws_sdk_sqs::types::{BatchResultErrorEntry, SendMessageBatchResultEntry};
use prost::Message;

use super::*;
use crate::generated::bronze::normalized_event::Payload;
use crate::generated::bronze::{NormalizedEvent, Trade};

const URL: &str = "https://sqs.eu-west-1.amazonaws.com/123456789012/bronze";

fn options() -> SqsOptions {
    SqsOptions { queue_url: URL.to_owned(), ..SqsOptions::default() }
}

fn client(options: SqsOptions) -> Sqs {
    Sqs::validate(options, &DeliveryOptions::default(), &Notices::default()).unwrap()
}

fn refusal(options: SqsOptions) -> String {
    Sqs::validate(options, &DeliveryOptions::default(), &Notices::default())
        .unwrap_err()
        .to_string()
}

fn text(pairs: &str) -> Pairs {
    Pairs::Text(pairs.to_owned())
}

fn event(symbol: &str, trade_id: &str) -> Vec<u8> {
    let trade = Trade { trade_id: trade_id.to_owned(), ..Trade::default() };
    NormalizedEvent {
        exchange: "bitmex".to_owned(),
        symbol: symbol.to_owned(),
        meta: [("data_type".to_owned(), "trade".to_owned())].into(),
        payload: Some(Payload::Trade(trade)),
        ..NormalizedEvent::default()
    }
    .encode_to_vec()
}

fn address(client: &Sqs, event: &[u8]) -> Result<Address, String> {
    let mut address = Address::default();
    let view = EventView::read(event).unwrap();
    client.address(&view, event, true, &mut address).map(|()| address)
}

#[test]
fn wrong_options_are_refused_with_flag_value_and_remedy() {
    let form = "give one like `https://sqs.eu-west-1.amazonaws.com/123456789012/bronze`";
    for url in ["https://host", "https://host/1/", "https://host/1/a.b", "https://host/1/.fifo"] {
        assert_eq!(
            refusal(SqsOptions { queue_url: url.to_owned(), ..options() }),
            format!("--sqs-queue-url: `{url}` has no name of a queue at its end; {form}")
        );
    }
    assert_eq!(
        refusal(SqsOptions { queue_routing: text("trade:bronze"), ..options() }),
        "--sqs-queue-routing: `bronze` is no http or https URL; give one like `https://host:port`"
    );
    assert_eq!(
        refusal(SqsOptions { region: Some("us-east-1".to_owned()), ..options() }),
        format!(
            "--sqs-queue-url: it contradicts --sqs-region: `{URL}` is in `eu-west-1`, not in \
             `us-east-1`; give the region of the queue"
        )
    );
    assert_eq!(
        refusal(SqsOptions { max_batch_size: Some(11), ..options() }),
        "--sqs-max-batch-size: 11 is out of range; give 1 to 10"
    );
    let elsewhere = SqsOptions {
        region: Some("us-east-1".to_owned()),
        endpoint_url: Some("http://127.0.0.1:9324".to_owned()),
        ..options()
    };
    assert!(Sqs::validate(elsewhere, &DeliveryOptions::default(), &Notices::default()).is_ok());
}

#[test]
fn a_message_is_text_with_attributes() {
    let client = client(SqsOptions {
        static_attributes: text("env:prod"),
        attribute_templates: text("pair:{{symbol}},none:{{meta.none}}"),
        ..options()
    });
    let event = event("XBTUSD", "1");
    let message = client.message(&client.queues[0], 3, &event).unwrap();
    let decoded = base64_simd::STANDARD.decode_to_vec(message.message_body()).unwrap();
    assert_eq!((message.id(), decoded), ("3", event.clone()));
    let attributes = message.message_attributes().unwrap();
    let mut found: Vec<_> = attributes
        .iter()
        .map(|(name, value)| (name.as_str(), value.data_type(), value.string_value().unwrap()))
        .collect();
    found.sort_unstable();
    assert_eq!(
        found,
        [
            ("contentEncoding", "String", "base64"),
            ("dataType", "String", "trade"),
            ("env", "String", "prod"),
            ("pair", "String", "XBTUSD"),
            ("payloadCase", "String", "trade"),
        ]
    );
    assert_eq!((message.message_group_id(), message.message_deduplication_id()), (None, None));
    let texts: usize =
        found.iter().map(|(name, kind, value)| name.len() + kind.len() + value.len()).sum();
    assert_eq!(address(&client, &event).unwrap().size, message.message_body().len() + texts);
}

#[test]
fn a_queue_says_how_large_a_message_may_be() {
    let client = client(options());
    let large = event("XBTUSD", &"1".repeat(300 << 10));
    let size = address(&client, &large).unwrap().size;
    assert!(size > client.limits().bytes);
    client.queues[0].learn(Some("262144"));
    client.queues[0].learn(Some("none"));
    assert_eq!(
        address(&client, &large).unwrap_err(),
        format!(
            "the event takes {size} bytes in base64 with its attributes; the queue takes at most \
             262144"
        )
    );
}

#[test]
fn fifo_queues_get_a_group_and_an_id_of_the_event() {
    let fifo = format!("{URL}.fifo");
    let client = client(SqsOptions { queue_routing: text(&format!("trade:{fifo}")), ..options() });
    assert!(client.limits().one_event_per_key);
    assert!(!super::tests::client(options()).limits().one_event_per_key);
    let message = |symbol: &str, id: &str| {
        let event = event(symbol, id);
        let found = address(&client, &event).unwrap();
        let message = client.message(&client.queues[found.destination], 0, &event).unwrap();
        assert_eq!(message.message_group_id(), Some(found.key.as_str()));
        (found.key, message.message_deduplication_id().unwrap().to_owned())
    };
    let (group, id) = message("XBTUSD", "1");
    assert_eq!((group.as_str(), id.len()), ("bitmex|XBTUSD|trade", 64));
    assert_eq!(message("XBTUSD", "1").1, id);
    assert_ne!(message("XBTUSD", "2").1, id);
    let (odd, _) = message("BTC USD", "1");
    assert!(odd.starts_with("bitmex|BTC_USD|trade~"), "{odd}");
    assert_eq!(message(&"x".repeat(500), "1").0.len(), 128);
}

#[test]
fn each_message_has_its_own_outcome() {
    let taken = |id: &str| {
        SendMessageBatchResultEntry::builder()
            .id(id)
            .message_id("m")
            .md5_of_message_body("d")
            .build()
            .unwrap()
    };
    let failed = |id: &str, code: &str, is_ours| {
        BatchResultErrorEntry::builder()
            .id(id)
            .code(code)
            .message("why")
            .sender_fault(is_ours)
            .build()
            .unwrap()
    };
    let output = SendMessageBatchOutput::builder()
        .successful(taken("4"))
        .successful(taken("0"))
        .successful(taken("99"))
        .failed(failed("3", "RequestThrottled", true))
        .failed(failed("1", "InternalError", false))
        .failed(failed("2", "Odd", true))
        .build()
        .unwrap();
    let transient = |text: &str| Outcome::Transient(text.to_owned());
    assert_eq!(
        outcomes(&output, 6),
        [
            Outcome::Acknowledged,
            transient("InternalError: why"),
            Outcome::Permanent("Odd: why".to_owned()),
            transient("RequestThrottled: why"),
            Outcome::Acknowledged,
            transient("SQS did not answer for it"),
        ]
    );
}
