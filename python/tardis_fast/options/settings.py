"""All options of a program together, from Python objects or from flags, environment and file."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tardis_fast._core import ConfigError
from tardis_fast.options.base import BusOptions, OptionsModel, unknown_name
from tardis_fast.options.bronze import BronzeOptions
from tardis_fast.options.delivery import DeliveryOptions
from tardis_fast.options.feed import FeedOptions
from tardis_fast.options.kafka import KafkaOptions, kafka_of_event_bus
from tardis_fast.options.kinesis import KinesisOptions
from tardis_fast.options.lake import LakeOptions
from tardis_fast.options.log import LogOptions
from tardis_fast.options.nats import NatsOptions
from tardis_fast.options.redis import RedisOptions
from tardis_fast.options.server import ServerOptions
from tardis_fast.options.sqs import SqsOptions

if TYPE_CHECKING:
    import os
    from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

BUSES: tuple[type[BusOptions], ...] = (
    KafkaOptions,
    KinesisOptions,
    SqsOptions,
    NatsOptions,
    RedisOptions,
    LakeOptions,
)
SECTIONS: tuple[type[OptionsModel], ...] = (
    *BUSES,
    DeliveryOptions,
    BronzeOptions,
    FeedOptions,
    ServerOptions,
    LogOptions,
)

NO_BUS = (
    "no bus is configured; give the options of at least one of "
    f"{', '.join(bus.section for bus in BUSES)}"
)

Given = Mapping[str, Mapping[str, object]]
"""Values by section and key, as one source gives them."""


@dataclass(frozen=True)
class Settings:
    """The options of all buses that are on, and of everything else."""

    buses: Mapping[str, BusOptions] = field(default_factory=dict)
    delivery: DeliveryOptions = field(default_factory=DeliveryOptions)
    bronze: BronzeOptions = field(default_factory=BronzeOptions)
    archive: FeedOptions = field(default_factory=FeedOptions)
    server: ServerOptions = field(default_factory=ServerOptions)
    log: LogOptions = field(default_factory=LogOptions)

    @classmethod
    def of_objects(  # noqa: PLR0913 - the sections, by name
        cls,
        buses: Mapping[str, object],
        *,
        event_bus: Mapping[str, Any] | None = None,
        delivery: DeliveryOptions | Mapping[str, Any] | None = None,
        bronze: BronzeOptions | None = None,
        archive: FeedOptions | Mapping[str, Any] | None = None,
        server: ServerOptions | Mapping[str, Any] | None = None,
    ) -> Settings:
        """Take objects, mappings or `None` by the name of the bus."""
        given = dict(buses)
        if event_bus is not None:
            if given.get("kafka") is not None:
                raise ConfigError(
                    "event_bus: it contradicts kafka: both configure Kafka; keep one of them"
                )
            given["kafka"] = kafka_of_event_bus(event_bus)
        return cls(
            buses={
                model.section: _options(model, given[model.section])
                for model in BUSES
                if given.get(model.section) is not None
            },
            delivery=_options(DeliveryOptions, delivery or {}),
            bronze=bronze or BronzeOptions(),
            archive=_options(FeedOptions, archive or {}),
            server=_options(ServerOptions, server or {}),
        )

    def with_state(
        self, state_dir: str | os.PathLike[str] | None, *, spill: bool | None
    ) -> Settings:
        """Return the same settings with these two, where they are given."""
        given = {"state_dir": state_dir, "spill": spill}
        stronger = {key: value for key, value in given.items() if value is not None}
        return replace(self, delivery=self.delivery.with_values(**stronger)) if stronger else self

    def to_core(self) -> str:
        """Return the JSON text for the core, secrets included: not to be logged."""
        values = {name: options.core_values() for name, options in self.buses.items()}
        return json.dumps(values | {"delivery": self.delivery.core_values()})


def _options(model: type[OptionsModel], given: object) -> Any:  # noqa: ANN401 - of type `model`
    if isinstance(given, model):
        return given
    if isinstance(given, Mapping):
        return model.from_keys(given)
    raise ConfigError(
        f"{model.section}: it is of type {type(given).__name__}; "
        f"give {model.__name__}(...) or a mapping"
    )


def load_settings(
    flags: Given,
    environment: Mapping[str, str],
    file: Path | None,
    sections: Sequence[type[OptionsModel]] = SECTIONS,
) -> Settings:
    """Merge the three sources: a flag beats the environment, and that beats the file.

    Only `sections` are read, and the others keep their defaults: what is in the environment or the
    file for another program must not disturb this one.
    """
    in_file = {} if file is None else _read_file(file)
    in_environment = _read_environment(environment)
    made: dict[str, Any] = {}
    for model in sections:
        values: dict[str, object] = {}
        for source in (in_file, in_environment, flags):
            _override(model, values, source.get(model.section, {}))
        if values:
            made[model.section] = model.from_keys(values)
    buses = {model.section: made.pop(model.section) for model in BUSES if model.section in made}
    return Settings(buses=buses, **made)


def _override(
    model: type[OptionsModel], values: dict[str, object], stronger: Mapping[str, object]
) -> None:
    """Put the values of a stronger source over the weaker ones, also where aliases differ."""
    for known in model.options():
        if any(name in stronger for name in known.keys):
            for name in known.keys:
                values.pop(name, None)
    values.update(stronger)


def _read_environment(environment: Mapping[str, str]) -> Given:
    """Return what is set; an empty variable is not, as those who write Compose files mean it."""
    given: dict[str, dict[str, object]] = {}
    for model in SECTIONS:
        for known in model.options():
            for name in known.keys:
                text = environment.get(known.environment_name_of(name))
                if text:
                    given.setdefault(model.section, {})[name] = text
    return given


def _read_file(file: Path) -> Given:
    try:
        tables: dict[str, Any] = tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(
            f"--config: `{file}` cannot be read: {error.strerror}; name a TOML file"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        # Only the place: the text around it may be a password.
        place = str(error).rpartition(" (at ")[2].rstrip(")") if "(at " in str(error) else ""
        raise ConfigError(
            f"--config: `{file}` is not TOML{f' at {place}' if place else ''}; correct it"
        ) from None
    models = {model.section: model for model in SECTIONS}
    for section, table in tables.items():
        if section not in models:
            raise ConfigError(unknown_name(str(file), section, list(models), "section"))
        if not isinstance(table, dict):
            raise ConfigError(
                f"{file}: `{section}` is no table; write [{section}] above its options"
            )
        names = [name for known in models[section].options() for name in known.keys]
        for key in table:
            if key not in names:
                raise ConfigError(unknown_name(f"{file}: [{section}]", key, names))
    return tables
