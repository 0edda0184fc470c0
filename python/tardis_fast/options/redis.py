"""The options of Redis."""

from typing import ClassVar

from tardis_fast.options.base import BusOptions, option
from tardis_fast.options.forms import Names, Pairs, Port, Secret, Switch, Text, Whole


class RedisOptions(BusOptions):
    """Redis: pipelined XADD with the fields data, key, payloadCase and dataType."""

    section: ClassVar[str] = "redis"
    flag_prefix: ClassVar[str] = "redis-"

    # A secret, since it may hold the password.
    url: Secret = option("Server, instead of host, port and the rest.", metavar="redis://...")
    host: Text = option("Server.", default="127.0.0.1")
    port: Port = option("Its port.", default="6379")
    password: Secret = option("The password; better in the environment or the file.")
    username: Text = option("Who logs in.")
    db: Whole = option("Number of the database.", default="0")
    tls: Switch = option("Connect with TLS.")
    stream: Text = option("Stream of all events that have no route of their own.")
    stream_routing: Pairs = option("Streams of payload cases.", metavar="CASE:STREAM,...")
    key_template: Text = option("The field key.", default="{{exchange}}|{{symbol}}|{{payloadCase}}")
    include_payloads: Names = option("Publish only these payload cases.", metavar="CASE,CASE")
    static_headers: Pairs = option("Fields of every entry.", metavar="KEY:VALUE,...")
    max_len: Whole = option("Entries a stream keeps, about.")
    max_batch_size: Whole = option("Entries in a pipeline, at most.")
    max_batch_delay_ms: Whole = option("How long an event waits for others, at most.")
