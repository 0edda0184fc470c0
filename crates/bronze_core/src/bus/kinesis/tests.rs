//! Tests that need no server.

use std::collections::BTreeMap;

use aws_sdk_kinesis::types::PutRecordsResultEntry;
use prost::Message;

use super::*;
use crate::generated::bronze::normalized_event::Payload;
use crate::generated::bronze::{NormalizedEvent, Trade};
use crate::payload_case::PayloadCase;

fn options() -> KinesisOptions {
    KinesisOptions { stream: "bronze".to_owned(), ..KinesisOptions::default() }
}

fn client(options: KinesisOptions) -> Kinesis {
    Kinesis::validate(options, &DeliveryOptions::default(), &Notices::default()).unwrap()
}

fn refusal(options: KinesisOptions) -> String {
    Kinesis::validate(options, &DeliveryOptions::default(), &Notices::default())
        .unwrap_err()
        .to_string()
}

fn text(pairs: &str) -> Pairs {
    Pairs::Text(pairs.to_owned())
}

fn event(trade_id: &str) -> Vec<u8> {
    let trade = Trade { trade_id: trade_id.to_owned(), ..Trade::default() };
    NormalizedEvent {
        exchange: "bitmex".to_owned(),
        symbol: "XBTUSD".to_owned(),
        meta: BTreeMap::from([("env".to_owned(), "old".to_owned())]),
        payload: Some(Payload::Trade(trade)),
        ..NormalizedEvent::default()
    }
    .encode_to_vec()
}

#[test]
fn wrong_options_are_refused_with_flag_value_and_remedy() {
    let form = "give up to 128 letters, digits, `_`, `.` and `-`";
    for (options, text) in [
        (
            KinesisOptions::default(),
            "--kinesis-stream: it is empty; name the destination of all events that have no route \
             of their own"
                .to_owned(),
        ),
        (
            KinesisOptions { stream: "a b".to_owned(), ..options() },
            format!("--kinesis-stream: `a b` is no name of a stream; {form}"),
        ),
        (
            KinesisOptions { stream_routing: text("trade:a/b"), ..options() },
            format!("--kinesis-stream-routing: `a/b` is no name of a stream; {form}"),
        ),
        (
            KinesisOptions { max_batch_size: Some(501), ..options() },
            "--kinesis-max-batch-size: 501 is out of range; give 1 to 500".to_owned(),
        ),
        (
            KinesisOptions { partition_key_template: Some(" ".to_owned()), ..options() },
            "--kinesis-partition-key-template: it is missing; give a template, or leave the option \
             out"
            .to_owned(),
        ),
        (
            KinesisOptions { ordering: Some("none".to_owned()), ..options() },
            "--kinesis-ordering: `none` is no ordering; give `key` or `batch`".to_owned(),
        ),
    ] {
        assert_eq!(refusal(options), text);
    }
    let unknown = KinesisOptions { stream_routing: text("trades:a"), ..options() };
    assert!(
        refusal(unknown).starts_with("--kinesis-stream-routing: unknown payload case `trades`")
    );
}

#[test]
fn static_headers_may_not_replace_what_an_event_says_of_itself() {
    for key in ["data_type", "data_name", "is_snapshot", "symbols", "session_id", "request_id"] {
        let options = KinesisOptions { static_headers: text(&format!("{key}:x")), ..options() };
        assert_eq!(
            refusal(options),
            format!(
                "--kinesis-static-headers: `{key}` is a key of `meta` that every event may have \
                 itself; choose another key"
            )
        );
    }
}

#[test]
fn static_headers_are_added_to_meta_and_replace_equal_keys() {
    let client =
        client(KinesisOptions { static_headers: text("env:prod,team:data,none:"), ..options() });
    let record = client.record(&event("1")).unwrap();
    let data = record.data().as_ref();
    let expected = [("env", "prod"), ("team", "data"), ("none", "")];
    let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let decoded = NormalizedEvent::decode(data).unwrap();
    assert_eq!(decoded.meta, BTreeMap::from(expected));
    assert_eq!(decoded.symbol, "XBTUSD");
    let view = EventView::read(data).unwrap();
    assert_eq!((view.meta("env"), view.meta("none")), (Some("prod"), Some("")));
    assert_eq!(record.partition_key(), Some("bitmex|XBTUSD|trade"));
}

#[test]
fn the_size_counts_key_and_static_headers() {
    let client = client(KinesisOptions { static_headers: text("env:prod"), ..options() });
    let address = |event: &[u8]| {
        let mut address = Address::default();
        let view = EventView::read(event).unwrap();
        client.address(&view, event, false, &mut address).map(|()| address)
    };
    let small = event("1");
    let record = client.record(&small).unwrap();
    let key = record.partition_key().unwrap();
    let found = address(&small).unwrap();
    assert_eq!(found.size, record.data().as_ref().len() + key.len());
    assert_eq!(found.key, key);
    let room = MOST_RECORD_BYTES - found.size;
    // Three lengths of the larger event take two bytes more each.
    assert_eq!(address(&event(&"1".repeat(room - 3))).unwrap().size, MOST_RECORD_BYTES);
    assert_eq!(
        address(&event(&"1".repeat(room - 2))).unwrap_err(),
        "the event takes 1048577 bytes with its partition key and static headers; a record of \
         Kinesis has at most 1048576"
    );
}

#[test]
fn cases_go_to_their_streams_and_ordering_decides_on_requests() {
    let client = client(KinesisOptions {
        stream_routing: text("trade:trades,quote:quotes"),
        ordering: Some("batch".to_owned()),
        max_batch_size: Some(7),
        ..options()
    });
    assert_eq!(client.route.destinations(), ["bronze", "trades", "quotes"]);
    assert_eq!(client.route.index(PayloadCase::Trade), 1);
    assert_eq!((client.limits().events, client.limits().one_event_per_key), (7, false));
    assert!(super::tests::client(options()).limits().one_event_per_key);
}

#[test]
fn each_record_has_its_own_outcome() {
    let failed =
        |code: &str| PutRecordsResultEntry::builder().error_code(code).error_message("why").build();
    let taken = PutRecordsResultEntry::builder().sequence_number("1").shard_id("s").build();
    let output = PutRecordsOutput::builder()
        .failed_record_count(4)
        .records(taken)
        .records(failed("ProvisionedThroughputExceededException"))
        .records(failed("InternalFailure"))
        .records(failed("KMSDisabledException"))
        .records(failed("SomethingNew"))
        .records(PutRecordsResultEntry::builder().build())
        .build()
        .unwrap();
    let transient = |text: &str| Outcome::Transient(text.to_owned());
    assert_eq!(
        outcomes(&output, 7),
        [
            Outcome::Acknowledged,
            transient("ProvisionedThroughputExceededException: why"),
            transient("InternalFailure: why"),
            Outcome::Permanent("KMSDisabledException: why".to_owned()),
            transient("SomethingNew: why"),
            transient("Kinesis gave it no number"),
            transient("Kinesis did not answer for it"),
        ]
    );
}

#[tokio::test]
async fn nothing_is_sent_before_a_connection() {
    let request = Request {
        destination: 0,
        is_alone: true,
        events: [(PayloadCase::Trade, &event("1")[..])].into_iter().collect(),
    };
    let answer = Arc::new(client(options())).send(request).await;
    assert_eq!(answer, Answer::Disconnected("there is no connection".to_owned()));
}
