"""Kinesis streams of tests, and what is in them."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from brokers import aws

if TYPE_CHECKING:
    from brokers.kinesis import KinesisBroker


def new_stream(broker: KinesisBroker, shards: int = 1) -> str:
    client, stream = broker.client(), f"test-{uuid.uuid4().hex}"
    client.create_stream(StreamName=stream, ShardCount=shards)
    client.get_waiter("stream_exists").wait(
        StreamName=stream, WaiterConfig={"Delay": 1, "MaxAttempts": 30}
    )
    return stream


def records(broker: KinesisBroker, stream: str) -> list[dict[str, Any]]:
    """Read all records of a stream, shard by shard."""
    client = broker.client()
    found: list[dict[str, Any]] = []
    for shard in client.list_shards(StreamName=stream)["Shards"]:
        place = client.get_shard_iterator(
            StreamName=stream, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
        )["ShardIterator"]
        while True:
            answer = client.get_records(ShardIterator=place)
            found += answer["Records"]
            place = answer["NextShardIterator"]
            if not answer["Records"] and not answer["MillisBehindLatest"]:
                break
    return found


def options(url: str, stream: str, **more: Any) -> dict[str, Any]:
    return {
        "stream": stream,
        "region": aws.REGION,
        "access_key_id": aws.ACCESS_KEY,
        "secret_access_key": aws.SECRET_KEY,
        "endpoint_url": url,
        **more,
    }
