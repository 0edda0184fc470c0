"""The options of NATS."""

from typing import ClassVar

from tardis_fast.options.base import BusOptions, option
from tardis_fast.options.forms import Names, Pairs, PathText, Secret, Switch, Text, Whole


class NatsOptions(BusOptions):
    """NATS: JetStream with acknowledgements, or best effort in core mode."""

    section: ClassVar[str] = "nats"
    flag_prefix: ClassVar[str] = "nats-"

    servers: Names = option("Servers to ask first.", default="127.0.0.1:4222", metavar="URL,URL")
    subject: Text = option("Subject of all events that have no route of their own.")
    subject_routing: Pairs = option("Subjects of payload cases.", metavar="CASE:SUBJECT,...")
    subject_template: Text = option(
        "Subject made from the event; goes before the subject.", metavar="TEMPLATE"
    )
    include_payloads: Names = option("Publish only these payload cases.", metavar="CASE,CASE")
    user: Text = option("Who logs in.")
    password: Secret = option("The password; better in the environment or the file.", key="pass")
    token: Secret = option("A token instead of user and password.")
    creds: PathText = option("A credentials file instead.")
    tls: Switch = option("Connect with TLS.")
    static_headers: Pairs = option("Headers of every message.", metavar="KEY:VALUE,...")
    stream: Text = option("JetStream stream; created if it is missing.")
    mode: Text = option(
        "With acknowledgements, or without.", default="jetstream", metavar="jetstream|core"
    )
    max_batch_size: Whole = option("Events that are sent together, at most.")
    max_batch_delay_ms: Whole = option("How long an event waits for others, at most.")
