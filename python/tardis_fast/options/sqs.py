"""The options of SQS."""

from typing import ClassVar

from tardis_fast.options.base import BusOptions, option
from tardis_fast.options.forms import Names, Pairs, Secret, Text, Whole


class SqsOptions(BusOptions):
    """SQS: SendMessageBatch, the event in base64; FIFO queues get group and deduplication ids."""

    section: ClassVar[str] = "sqs"
    flag_prefix: ClassVar[str] = "sqs-"

    queue_url: Text = option("Queue of all events that have no route of their own.", metavar="URL")
    region: Text = option("AWS region.")
    queue_routing: Pairs = option("Queues of payload cases.", metavar="CASE:URL,...")
    include_payloads: Names = option("Publish only these payload cases.", metavar="CASE,CASE")
    access_key_id: Secret = option("Key id; without one, the SDK's own chain finds credentials.")
    secret_access_key: Secret = option("Its secret; better in the environment or the file.")
    session_token: Secret = option("Token of temporary credentials.")
    endpoint_url: Text = option("Another server than that of the region.", metavar="URL")
    static_attributes: Pairs = option(
        "Attributes of every message.",
        metavar="KEY:VALUE,...",
        aliases=("static_message_attributes",),
    )
    attribute_templates: Pairs = option(
        "Attributes made from the event.", metavar="KEY:TEMPLATE,..."
    )
    max_batch_size: Whole = option("Messages in a request, at most.")
    max_batch_delay_ms: Whole = option("How long an event waits for others, at most.")
