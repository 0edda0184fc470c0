"""How a client of AWS reaches a server on this machine."""

from __future__ import annotations

from typing import Any

import boto3
from botocore.config import Config

REGION = "eu-west-1"
ACCESS_KEY = "test"
SECRET_KEY = "test"


def client(service: str, url: str) -> Any:
    """Make a client with keys that open nothing, which does not try again or wait long."""
    return boto3.client(
        service,
        endpoint_url=url,
        region_name=REGION,
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
        config=Config(
            connect_timeout=5, read_timeout=30, retries={"total_max_attempts": 1}, proxies={}
        ),
    )
