"""`TardisMachine`: the options of tardis-machine, and who owns the publisher."""

from collections.abc import Mapping
from types import TracebackType
from typing import Any

from typing_extensions import Self

from tardis_fast.options import (
    DeliveryOptions,
    KafkaOptions,
    KinesisOptions,
    LakeOptions,
    NatsOptions,
    RedisOptions,
    SqsOptions,
)
from tardis_fast.publisher import Publisher


class TardisMachine:
    """A machine that publishes to the buses it is given, if any.

    Buses are given as to `Publisher`; `delivery` are its delivery options by name. Without a bus
    there is no publisher: no connection, no thread, no log line.
    """

    def __init__(  # noqa: PLR0913 - the options, by name
        self,
        *,
        event_bus: Mapping[str, Any] | None = None,
        kafka: KafkaOptions | Mapping[str, Any] | None = None,
        kinesis: KinesisOptions | Mapping[str, Any] | None = None,
        sqs: SqsOptions | Mapping[str, Any] | None = None,
        nats: NatsOptions | Mapping[str, Any] | None = None,
        redis: RedisOptions | Mapping[str, Any] | None = None,
        lake: LakeOptions | Mapping[str, Any] | None = None,
        **delivery: Any,  # noqa: ANN401 - DeliveryOptions checks them
    ) -> None:
        checked = DeliveryOptions.from_keys(delivery)
        given = (event_bus, kafka, kinesis, sqs, nats, redis, lake)
        self._publisher = None
        if any(bus is not None for bus in given):
            self._publisher = Publisher(
                event_bus=event_bus,
                kafka=kafka,
                kinesis=kinesis,
                sqs=sqs,
                nats=nats,
                redis=redis,
                lake=lake,
                delivery=checked,
            )

    @property
    def publisher(self) -> Publisher | None:
        """The publisher; `None` if no bus is given."""
        return self._publisher

    def close(self) -> None:
        """Deliver what was published, for at most `drain_timeout` seconds, and spill the rest."""
        if self._publisher is not None:
            self._publisher.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
