"""The options of Kinesis."""

from typing import ClassVar

from tardis_fast.options.base import BusOptions, option
from tardis_fast.options.forms import Names, Pairs, Secret, Text, Whole


class KinesisOptions(BusOptions):
    """Kinesis: PutRecords; static headers go into the event's meta."""

    section: ClassVar[str] = "kinesis"
    flag_prefix: ClassVar[str] = "kinesis-"

    stream: Text = option(
        "Stream of all events that have no route of their own.", aliases=("stream_name",)
    )
    region: Text = option("AWS region.")
    stream_routing: Pairs = option("Streams of payload cases.", metavar="CASE:STREAM,...")
    include_payloads: Names = option("Publish only these payload cases.", metavar="CASE,CASE")
    access_key_id: Secret = option("Key id; without one, the SDK's own chain finds credentials.")
    secret_access_key: Secret = option("Its secret; better in the environment or the file.")
    session_token: Secret = option("Token of temporary credentials.")
    endpoint_url: Text = option("Another server than that of the region.", metavar="URL")
    partition_key_template: Text = option(
        "Partition key of a record.", default="{{exchange}}|{{symbol}}|{{payloadCase}}"
    )
    static_headers: Pairs = option("Pairs for the meta of every event.", metavar="KEY:VALUE,...")
    ordering: Text = option(
        "Keep the order of a key with one event of it per request, or send whole batches.",
        default="key",
        metavar="key|batch",
    )
    max_batch_size: Whole = option("Events in a request, at most.")
    max_batch_delay_ms: Whole = option("How long an event waits for others, at most.")
