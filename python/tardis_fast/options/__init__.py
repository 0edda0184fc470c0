"""Options: one declaration each, for flags, environment, configuration file and Python."""

from tardis_fast.options.base import BusOptions
from tardis_fast.options.bronze import BronzeOptions
from tardis_fast.options.delivery import DeliveryOptions
from tardis_fast.options.feed import FeedOptions
from tardis_fast.options.kafka import KafkaOptions
from tardis_fast.options.kinesis import KinesisOptions
from tardis_fast.options.lake import LakeOptions
from tardis_fast.options.log import LogOptions
from tardis_fast.options.nats import NatsOptions
from tardis_fast.options.redis import RedisOptions
from tardis_fast.options.server import ServerOptions
from tardis_fast.options.settings import BUSES, Settings, load_settings
from tardis_fast.options.sqs import SqsOptions

__all__ = [
    "BUSES",
    "BronzeOptions",
    "BusOptions",
    "DeliveryOptions",
    "FeedOptions",
    "KafkaOptions",
    "KinesisOptions",
    "LakeOptions",
    "LogOptions",
    "NatsOptions",
    "RedisOptions",
    "ServerOptions",
    "Settings",
    "SqsOptions",
    "load_settings",
]
