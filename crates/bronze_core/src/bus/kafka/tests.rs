//! Options, keys, headers and sizes; what needs a broker is tested in `tests/bus/kafka`.

use std::time::Duration;

use rdkafka::message::Headers;

use super::*;
use crate::bus::{Names, Pairs, Secret};
use crate::generated::bronze::{NormalizedEvent, Trade, normalized_event::Payload};

use prost::Message as _;

fn options() -> KafkaOptions {
    KafkaOptions {
        brokers: Names::Text("localhost:9092".to_owned()),
        topic: Some("events".to_owned()),
        ..KafkaOptions::default()
    }
}

fn config(text: &str) -> Properties {
    Properties::Text(text.to_owned())
}

fn bus(options: KafkaOptions) -> Kafka {
    Kafka::validate(options, &DeliveryOptions::default(), &Notices::default()).unwrap()
}

/// Why options are refused.
fn refusal(change: impl FnOnce(&mut KafkaOptions)) -> String {
    let mut options = options();
    change(&mut options);
    Kafka::validate(options, &DeliveryOptions::default(), &Notices::default())
        .unwrap_err()
        .to_string()
}

fn property(options: KafkaOptions, name: &str) -> String {
    bus(options).settings.config.native().unwrap().get(name).unwrap()
}

#[allow(clippy::unnecessary_wraps)] // options are given so
fn text(value: &str) -> Option<String> {
    Some(value.to_owned())
}

fn event(symbol: &str, meta: &[(&str, &str)]) -> Vec<u8> {
    let pair = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    NormalizedEvent {
        exchange: "bitmex".to_owned(),
        symbol: symbol.to_owned(),
        meta: meta.iter().map(pair).collect(),
        payload: Some(Payload::Trade(Trade::default())),
        ..NormalizedEvent::default()
    }
    .encode_to_vec()
}

#[test]
fn brokers_and_topics_are_checked() {
    for (brokers, expected) in [
        ("", "--kafka-brokers: it is missing; name at least one broker as host:port"),
        ("a:1,,b:2", "--kafka-brokers: `a:1,,b:2` has an empty entry; remove the extra comma"),
        ("a:0", "--kafka-brokers: `a:0` is no broker; write host:port"),
        ("a:port", "--kafka-brokers: `a:port` is no broker; write host:port"),
        ("http://a:1", "--kafka-brokers: `http://a:1` is no broker; write host:port"),
    ] {
        assert_eq!(refusal(|o| o.brokers = Names::Text(brokers.to_owned())), expected);
    }
    let good = Names::List(vec!["a".to_owned(), "b.c:9093".to_owned(), "[::1]:9092".to_owned()]);
    let good = KafkaOptions { brokers: good, ..options() };
    assert_eq!(property(good, "bootstrap.servers"), "a,b.c:9093,[::1]:9092");

    assert_eq!(
        refusal(|o| o.topic = None),
        "--kafka-topic: it is missing; name the topic of the events"
    );
    assert_eq!(
        refusal(|o| o.topic = text(" ")),
        "--kafka-topic: it is empty; name the destination of all events that have no route of their \
         own"
    );
    let rule = "is no name of a Kafka topic; give 1 to 249 letters, digits, dots, underscores and \
                hyphens";
    for topic in ["a b", "..", "a/b", &"x".repeat(250)] {
        let expected = format!("--kafka-topic: `{topic}` {rule}");
        assert_eq!(refusal(|o| o.topic = text(topic)), expected);
    }
    assert_eq!(
        refusal(|o| o.topic_routing = Pairs::Text("trade:tra{{symbol}}".to_owned())),
        format!("--kafka-topic-routing: `tra{{{{symbol}}}}` {rule}")
    );
    assert!(refusal(|o| o.topic_routing = Pairs::Text("trades:x".to_owned())).starts_with(
        "--kafka-topic-routing: unknown payload case `trades`; valid are trade, bookChange"
    ));
    assert!(
        refusal(|o| o.include_payloads = Names::Text("tick".to_owned()))
            .starts_with("--kafka-include-payloads: unknown payload case `tick`")
    );
}

#[test]
fn words_are_checked() {
    assert_eq!(
        refusal(|o| o.compression = text("brotli")),
        "--kafka-compression: `brotli` is not known; give one of none, gzip, snappy, lz4, zstd"
    );
    assert_eq!(
        refusal(|o| o.acks = Some(Word::Integer(2))),
        "--kafka-acks: `2` is not known; give one of all, -1, 1, 0"
    );
    assert_eq!(
        refusal(|o| o.sasl_mechanism = text("gssapi")),
        "--kafka-sasl-mechanism: `gssapi` is not known; give one of plain, scram-sha-256, \
         scram-sha-512"
    );
    assert_eq!(
        refusal(|o| o.client_id = text("")),
        "--kafka-client-id: `` is empty; leave it out for `tardis-fast`"
    );
    assert_eq!(
        refusal(|o| o.max_batch_size = Some(0)),
        "--kafka-max-batch-size: 0 is out of range; give 1 to 1000000"
    );
    assert_eq!(
        refusal(|o| o.max_batch_delay_ms = Some(60_001)),
        "--kafka-max-batch-delay-ms: 60001 is out of range; give 0 to 60000"
    );
    assert_eq!(
        refusal(|o| o.static_headers = Pairs::Text("dataType:x".to_owned())),
        "--kafka-static-headers: `dataType` is a header that every record has already; give yours \
         another name"
    );
    assert!(
        refusal(|o| o.key_template = text("{{sym}}"))
            .starts_with("--kafka-key-template: unknown placeholder `{{sym}}`")
    );
    assert!(
        refusal(|o| o.key_template = text(" ")).starts_with("--kafka-key-template: `` is empty")
    );
    assert!(
        refusal(|o| o.meta_headers_prefix = text(""))
            .starts_with("--kafka-meta-headers-prefix: `` is empty")
    );
}

#[test]
fn acknowledgements_and_idempotence_agree() {
    assert_eq!(
        refusal(|o| (o.idempotent, o.acks) = (Some(true), Some(Word::Text("1".to_owned())))),
        "--kafka-idempotent: it contradicts --kafka-acks: without the acknowledgement of all \
         replicas a retry may make a duplicate; set acks to all, or idempotent to false"
    );
    assert_eq!(
        refusal(|o| (o.idempotent, o.config) = (Some(true), config("acks=1"))),
        "--kafka-idempotent: it contradicts `acks` of --kafka-config: without the acknowledgement \
         of all replicas a retry may make a duplicate; set acks to all, or idempotent to false"
    );
    let read = |o: &KafkaOptions, name| property(o.clone(), name);
    let all = KafkaOptions { acks: Some(Word::Text("all".to_owned())), ..options() };
    for options in [all, options()] {
        assert_eq!(read(&options, "acks"), "-1");
        assert_eq!(read(&options, "enable.idempotence"), "true");
    }
    let leader = KafkaOptions { acks: Some(Word::Integer(1)), ..options() };
    assert_eq!(read(&leader, "enable.idempotence"), "false");
    assert_eq!(read(&leader, "max.in.flight"), "1");
    let agreed = KafkaOptions { config: config("acks=all"), ..options() };
    let agreed = KafkaOptions { acks: Some(Word::Integer(-1)), ..agreed };
    assert_eq!(read(&agreed, "acks"), "-1");
}

#[test]
fn credentials_are_whole_or_absent() {
    let secret = || Some(Secret::from("hunter2"));
    assert_eq!(
        refusal(|o| o.sasl_mechanism = text("plain")),
        "--kafka-sasl-username: it is missing; credentials are incomplete: PLAIN needs the user"
    );
    assert_eq!(
        refusal(|o| (o.sasl_mechanism, o.sasl_username) = (text("SCRAM-SHA-256"), text("me"))),
        "--kafka-sasl-password: it is missing; credentials are incomplete: SCRAM-SHA-256 needs the \
         password"
    );
    assert_eq!(
        refusal(|o| o.sasl_password = secret()),
        "--kafka-sasl-mechanism: it is missing; --kafka-sasl-password needs to know how to log in"
    );
    assert_eq!(
        refusal(|o| o.ssl_ca = text("/ca.pem")),
        "--kafka-ssl-ca: it contradicts --kafka-ssl: a certificate is of use to encrypted \
         connections only; set --kafka-ssl as well"
    );
    let whole = KafkaOptions {
        ssl: Some(true),
        sasl_mechanism: text("scram-sha-512"),
        sasl_username: text("me"),
        sasl_password: secret(),
        ..options()
    };
    assert_eq!(property(whole.clone(), "security.protocol"), "sasl_ssl");
    assert_eq!(property(whole.clone(), "ssl.ca.location"), "probe");
    assert_eq!(
        refusal(|o| {
            *o = KafkaOptions { config: config("security.protocol=ssl"), ..whole.clone() };
        }),
        "--kafka-sasl-mechanism: it contradicts `security.protocol` of --kafka-config: it says \
         `ssl`; keep one of them"
    );
    assert_eq!(
        refusal(|o| {
            (o.ssl, o.config) = (Some(false), config("security.protocol=ssl"));
        }),
        "--kafka-ssl: it contradicts `security.protocol` of --kafka-config: it says `ssl`; keep one \
         of them"
    );
    let by_config = config("sasl.mechanism=PLAIN,sasl.username=me,sasl.password=hunter2");
    let by_config = KafkaOptions { config: by_config, ..options() };
    assert_eq!(property(by_config, "security.protocol"), "sasl_plaintext");
}

#[test]
fn properties_of_librdkafka_are_checked() {
    for (given, expected) in [
        (
            "no.such=1",
            "--kafka-config: `no.such` is no property of librdkafka; see its CONFIGURATION.md",
        ),
        (
            "linger.ms=1,queue.buffering.max.ms=2",
            "--kafka-config: the key `queue.buffering.max.ms` occurs twice; keep one of them",
        ),
        ("linger.ms", "--kafka-config: `linger.ms` is no name=value; write name=value,name=value"),
        (
            "delivery.timeout.ms=5",
            "--kafka-config: `message.timeout.ms` is how long an event is tried, which is said for \
             all buses at once; set --delivery-timeout-ms",
        ),
        (
            "max.in.flight=9",
            "--kafka-config: ``max.in.flight` must be set <= 5 when `enable.idempotence` is true` \
             librdkafka refuses these properties together; change one of them",
        ),
    ] {
        assert_eq!(refusal(|o| o.config = config(given)), expected);
    }
    let refused = refusal(|o| o.config = config("socket.timeout.ms=soon"));
    assert!(
        refused.starts_with("--kafka-config: `socket.timeout.ms=soon` is refused"),
        "{refused}"
    );
    let later = KafkaOptions { max_batch_delay_ms: Some(7), ..options() };
    assert_eq!(property(later.clone(), "linger.ms"), "7");
    assert_eq!(
        refusal(|o| *o = KafkaOptions { config: config("linger.ms=9"), ..later.clone() }),
        "--kafka-max-batch-delay-ms: it contradicts `queue.buffering.max.ms` of --kafka-config: one \
         says `7`, the other `9`; keep one of them"
    );
    let own =
        KafkaOptions { config: config("compression.type=zstd,debug=broker,topic"), ..options() };
    assert_eq!(property(own.clone(), "compression.codec"), "zstd");
    assert_eq!(property(own, "debug"), "broker,topic");
    assert_eq!(property(options(), "compression.codec"), "lz4");
    let month =
        DeliveryOptions { delivery_timeout_ms: 30 * 86_400_000, ..DeliveryOptions::default() };
    let bus = Kafka::validate(options(), &month, &Notices::default()).unwrap();
    assert_eq!(bus.settings.config.get("message.timeout.ms"), Some("2147483647"));
    let hasty = DeliveryOptions { delivery_timeout_ms: 3, ..DeliveryOptions::default() };
    assert!(Kafka::validate(later, &hasty, &Notices::default()).is_err());
}

#[test]
fn no_text_shows_a_secret() {
    let secret = "hunter2";
    let pairs = "sasl.mechanism=PLAIN,sasl.username=me,sasl.password=hunter2";
    let login = KafkaOptions { config: config(pairs), ..options() };
    let contradicting =
        KafkaOptions { sasl_password: Some(Secret::from("other")), ..login.clone() };
    let texts = [
        format!("{login:?}"),
        format!("{:?}", bus(login)),
        refusal(|o| *o = contradicting),
        refusal(|o| o.config = config("sasl.password:hunter2")),
        refusal(|o| o.config = config("sasl.jaas.config=hunter2")),
        refusal(|o| o.config = config("ssl.key.password=hunter2\0")),
    ];
    for text in texts {
        assert!(!text.contains(secret) && !text.contains("other"), "{text}");
    }
}

#[test]
fn keys_and_headers_say_what_an_event_is() {
    let bus = bus(KafkaOptions {
        key_template: text("{{symbol}}"),
        static_headers: Pairs::Text("env:prod,team:".to_owned()),
        meta_headers_prefix: text("meta-"),
        ..options()
    });
    let form = &bus.settings.form;
    let bytes = event("XBTUSD", &[("data_type", "trade"), ("route", "/replay")]);
    let view = EventView::read(&bytes).unwrap();
    let headers = form.headers(&view);
    let read: Vec<_> = headers.iter().map(|header| (header.key, header.value.unwrap())).collect();
    let expected: [(&str, &[u8]); 6] = [
        ("payloadCase", b"trade"),
        ("dataType", b"trade"),
        ("env", b"prod"),
        ("team", b""),
        ("meta-data_type", b"trade"),
        ("meta-route", b"/replay"),
    ];
    assert_eq!(read, expected);
    let texts = read.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>();
    assert_eq!(form.size(&view), texts + "XBTUSD".len());

    let bytes = event("", &[]);
    let headers = form.headers(&EventView::read(&bytes).unwrap());
    let data_type = headers.iter().find(|header| header.key == "dataType").unwrap();
    assert_eq!(data_type.value, Some(&b""[..]));
}

#[test]
fn an_address_is_the_topic_of_the_case() {
    let bus = bus(KafkaOptions {
        topic_routing: Pairs::Text("trade:trades".to_owned()),
        include_payloads: Names::Text("trade".to_owned()),
        config: config("message.max.bytes=1000"),
        ..options()
    });
    assert_eq!(KafkaOptions::used_topics(&bus.settings), ["trades"]);
    assert!(bus.filter().allows(PayloadCase::Trade) && !bus.filter().allows(PayloadCase::Quote));
    let bytes = event("XBTUSD", &[]);
    let mut address = Address::default();
    bus.address(&EventView::read(&bytes).unwrap(), &bytes, true, &mut address).unwrap();
    let expected = Address {
        destination: 1,
        size: bytes.len() + RECORD_OVERHEAD,
        key: "bitmex|XBTUSD|trade".to_owned(),
    };
    assert_eq!(address, expected);

    assert_eq!(
        bus.address_unread(PayloadCase::Trade, bytes.len()),
        Some((expected.destination, expected.size))
    );
    assert_eq!(bus.address_unread(PayloadCase::Trade, 501), None);

    let bytes = event("XBTUSD", &[("note", &"x".repeat(970))]);
    let refused = bus.address(&EventView::read(&bytes).unwrap(), &bytes, false, &mut address);
    let size = bytes.len() + "bitmex|XBTUSD|tradepayloadCasetradedataType".len();
    assert_eq!(
        refused.unwrap_err(),
        format!(
            "the event takes {size} bytes with its key and headers, more than `message.max.bytes` \
             (1000); raise it with --kafka-config and on the topic"
        )
    );
}

fn is_direct(change: impl FnOnce(&mut KafkaOptions)) -> bool {
    let mut options = options();
    change(&mut options);
    bus(options).settings.direct.is_some()
}

#[test]
fn the_direct_client_publishes_where_it_can() {
    assert!(is_direct(|_| ()));
    assert!(is_direct(|o| o.compression = text("zstd")));
    assert!(is_direct(|o| o.acks = Some(Word::Integer(1))));
    assert!(is_direct(|o| o.config = config("linger.ms=1,batch.size=9000,client.id=me")));
    assert!(!is_direct(|o| o.client = text("librdkafka")));
    assert!(!is_direct(|o| o.compression = text("gzip")));
    assert!(!is_direct(|o| o.acks = Some(Word::Integer(0))));
    assert!(!is_direct(|o| o.ssl = Some(true)));
    assert!(!is_direct(|o| o.config = config("socket.nagle.disable=true")));
    for (compression, properties, expected) in [
        ("snappy", "", "--kafka-client: it contradicts --kafka-compression"),
        ("lz4", "debug=all", "--kafka-client: it contradicts `debug` of --kafka-config"),
        ("lz4", "acks=0", "--kafka-client: it contradicts `acks` of --kafka-config"),
    ] {
        let refused = refusal(|o| {
            (o.client, o.compression) = (text("direct"), text(compression));
            o.config = config(properties);
        });
        let rest = "the direct client cannot do that; leave one of them out";
        assert_eq!(refused, format!("{expected}: {rest}"));
    }
    assert_eq!(
        refusal(|o| o.client = text("java")),
        "--kafka-client: `java` is not known; give one of direct, librdkafka"
    );
}

#[test]
fn the_direct_client_knows_what_the_options_say() {
    let bus = bus(KafkaOptions {
        brokers: Names::Text("a,b.c:9093,[::1]:9094".to_owned()),
        max_batch_size: Some(7),
        max_batch_delay_ms: Some(250),
        config: config("batch.size=9000,acks=1,message.max.bytes=8000"),
        ..options()
    });
    let direct = bus.settings.direct.as_ref().unwrap();
    let brokers: Vec<_> = direct.bootstrap.iter().map(ToString::to_string).collect();
    assert_eq!(brokers, ["a:9092", "b.c:9093", "[::1]:9094"]);
    assert_eq!((direct.batch_events, direct.batch_bytes), (7, 8_000));
    assert_eq!((direct.acks, direct.idempotent), (1, false));
    assert_eq!(direct.client_id, "tardis-fast");
    assert_eq!(bus.limits().linger, Duration::from_millis(250));
}

#[tokio::test]
async fn sending_without_a_connection_says_so() {
    let expected = Answer::Disconnected("there is no connection to Kafka".to_owned());
    for client in ["direct", "librdkafka"] {
        let bus = Arc::new(bus(KafkaOptions { client: text(client), ..options() }));
        let request = Request { destination: 0, is_alone: true, ..Request::default() };
        assert_eq!(Arc::clone(&bus).send(request).await, expected);
        bus.close().await;
    }
    let bus = bus(options());
    assert_eq!(bus.limits().linger, Duration::from_millis(5));
}
