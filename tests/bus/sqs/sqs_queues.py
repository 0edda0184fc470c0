"""Queues of tests, and what is in them."""

from __future__ import annotations

import base64
import uuid
from typing import TYPE_CHECKING, Any

from brokers import aws

if TYPE_CHECKING:
    from brokers.sqs import SqsBroker


def new_queue(broker: SqsBroker, *, fifo: bool = False) -> str:
    name = f"test-{uuid.uuid4().hex}" + (".fifo" if fifo else "")
    attributes = {"FifoQueue": "true"} if fifo else {}
    return str(broker.client().create_queue(QueueName=name, Attributes=attributes)["QueueUrl"])


def messages(broker: SqsBroker, url: str) -> list[dict[str, Any]]:
    """Take all messages out of a queue."""
    client = broker.client()
    found: list[dict[str, Any]] = []
    while True:
        answer = client.receive_message(
            QueueUrl=url,
            MaxNumberOfMessages=10,
            MessageAttributeNames=["All"],
            AttributeNames=["All"],
        )
        if not answer.get("Messages"):
            return found
        for message in answer["Messages"]:
            found.append(message)
            # A FIFO queue gives nothing more of a group before its messages are deleted.
            client.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])


def bodies(found: list[dict[str, Any]], field: str = "Body") -> list[bytes]:
    return [base64.b64decode(message[field], validate=True) for message in found]


def options(endpoint: str, url: str, **more: Any) -> dict[str, Any]:
    return {
        "queue_url": url,
        "region": aws.REGION,
        "access_key_id": aws.ACCESS_KEY,
        "secret_access_key": aws.SECRET_KEY,
        "endpoint_url": endpoint,
        **more,
    }
