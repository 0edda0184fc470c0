"""What all options share: how a field is declared, read, shown and handed to the core.

A field of a model is the one declaration of an option. Its flag, environment name, key in the
configuration file, help text and place in the core's JSON are derived from it here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError
from typing_extensions import Self

from tardis_fast._core import ConfigError
from tardis_fast.options.forms import Form, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pydantic.fields import FieldInfo


def option(  # noqa: PLR0913 - each is one fact about an option
    description: str,
    *,
    default: str | None = None,
    value: str | float | None = None,
    metavar: str | None = None,
    key: str | None = None,
    aliases: tuple[str, ...] = (),
    for_core: bool = True,
    in_help: bool = False,
) -> Any:  # noqa: ANN401 - the type of the field it declares
    """Declare an option.

    `default` is what the core takes when the option is not given, in words; `value` is what the
    field holds then. `key` is the option's name where that is no Python name; `aliases` are other
    keys it may be written by; `in_help` is for the few that plain `--help` has room for.
    """
    if default is None and value is not None:
        default = ("on" if value else "off") if isinstance(value, bool) else f"{value}"
    facts: dict[str, Any] = {
        "default": default,
        "metavar": metavar,
        "key": key,
        "aliases": list(aliases),
        "for_core": for_core,
        "in_help": in_help,
    }
    return Field(default=value, description=description, json_schema_extra={"option": facts})


@dataclass(frozen=True)
class Option:
    """An option, with all its names."""

    section: str
    field: str
    key: str
    aliases: tuple[str, ...]
    prefix: str
    description: str
    default: str | None
    form: Form
    for_core: bool
    in_help: bool

    @property
    def flag(self) -> str:
        """Its flag."""
        return self.flag_of(self.key)

    def flag_of(self, key: str) -> str:
        """Return the flag of its key or an alias."""
        return f"--{self.prefix}{key}".replace("_", "-")

    @property
    def flags(self) -> tuple[str, ...]:
        """Its flag, then those of its aliases."""
        return tuple(self.flag_of(key) for key in self.keys)

    @property
    def keys(self) -> tuple[str, ...]:
        """Its key in the configuration file, then the aliases."""
        return (self.key, *self.aliases)

    def environment_name_of(self, key: str) -> str:
        """Return the environment variable of its key or an alias."""
        return f"TM_{self.prefix}{key}".replace("-", "_").upper()


def _option_of(model: type[OptionsModel], field: str, info: FieldInfo) -> Option:
    extra = info.json_schema_extra
    facts: Any = extra["option"] if isinstance(extra, dict) else {}
    form = next(entry for entry in info.metadata if isinstance(entry, Form))
    if facts["metavar"]:
        form = Form(facts["metavar"], form.repeats, form.is_switch, form.is_secret)
    return Option(
        section=model.section,
        field=field,
        key=facts["key"] or field,
        aliases=tuple(facts["aliases"]),
        prefix=model.flag_prefix,
        description=info.description or "",
        default=facts["default"],
        form=form,
        for_core=facts["for_core"],
        in_help=facts["in_help"],
    )


class _Hidden:
    def __repr__(self) -> str:
        return "***"


class OptionsModel(BaseModel):
    """Options that belong together: those of a bus, or of delivery.

    What cannot be used is refused with `ConfigError`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    section: ClassVar[str]
    """The table in the configuration file, and the key in the core's JSON."""
    flag_prefix: ClassVar[str] = ""

    def __init__(self, **values: Any) -> None:  # noqa: ANN401 - pydantic checks them
        refusal = None
        known = type(self).model_fields
        try:
            # None is as good as not given, also where an option has a value of its own.
            super().__init__(
                **{
                    name: value
                    for name, value in values.items()
                    if value is not None or name not in known
                }
            )
        except ValidationError as error:
            refusal = self._refusal(error)
        # Raised out here so that no secret comes along in pydantic's own error, as the context.
        if refusal is not None:
            raise refusal

    @classmethod
    def _refusal(cls, error: ValidationError) -> ConfigError:
        first = error.errors(include_url=False, include_input=False)[0]
        field = str(first["loc"][0])
        declared = {known.field: known for known in cls.options()}
        if field not in declared:
            return ConfigError(cls.unknown_key(cls.section, field))
        cause = first.get("ctx", {}).get("error", first["msg"])
        return ConfigError(f"{declared[field].flag}: {cause}")

    @classmethod
    def options(cls) -> tuple[Option, ...]:
        """Return the options, in the order they are declared."""
        return tuple(_option_of(cls, name, info) for name, info in cls.model_fields.items())

    @classmethod
    def unknown_key(cls, place: str, key: str) -> str:
        """Say that `key`, which stands at `place`, is no option, and which may be meant."""
        return unknown_name(place, key, [name for known in cls.options() for name in known.keys])

    @classmethod
    def from_keys(cls, values: Mapping[str, object], place: str | None = None) -> Any:  # noqa: ANN401 - Self is of Python 3.11
        """Make options from keys and aliases as the configuration file has them."""
        by_name = {name: known for known in cls.options() for name in (*known.keys, known.field)}
        fields: dict[str, object] = {}
        written: dict[str, str] = {}
        for name, value in values.items():
            known = by_name.get(name)
            if known is None:
                raise ConfigError(cls.unknown_key(place or cls.section, name))
            if known.field in fields:
                first, second = known.flag_of(written[known.field]), known.flag_of(name)
                raise ConfigError(
                    f"{first}: it contradicts {second}: both name the same option; keep one of them"
                )
            fields[known.field] = value
            written[known.field] = name
        return cls(**fields)

    def given(self) -> Iterator[tuple[Option, Any]]:
        """Iterate over the options that have a value."""
        for known in self.options():
            value = getattr(self, known.field)
            if value is not None:
                yield known, value

    def with_values(self, **stronger: Any) -> Self:  # noqa: ANN401 - pydantic checks them
        """Return the same options with these in place of theirs."""
        return type(self)(**{known.field: value for known, value in self.given()} | stronger)

    def core_values(self) -> dict[str, object]:
        """Return what the core is told, secrets in plain text: not to be logged."""
        return {known.key: _plain(value) for known, value in self.given() if known.for_core}

    def to_core(self) -> str:
        """Return the JSON text of these options for the core, secrets included: never log it."""
        return json.dumps(self.core_values())

    def __repr_args__(self) -> Iterator[tuple[str, object]]:
        for known, value in self.given():
            if known.form.is_secret:
                yield known.field, _Hidden()
            else:
                yield known.field, _without_users(value)

    def __str__(self) -> str:
        return repr(self)


def _without_users(value: object) -> object:
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, tuple):
        return tuple(_without_users(entry) for entry in value)
    return value


def _plain(value: Any) -> object:  # noqa: ANN401 - what the readers above return
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, tuple):
        return [_plain(entry) for entry in value]
    return value


def unknown_name(place: str, name: str, known: Sequence[str], kind: str = "option") -> str:
    """Say that `name`, which stands at `place`, is unknown, and which of `known` may be meant."""
    near = get_close_matches(name, known, n=1, cutoff=0.5)
    remedy = f"did you mean `{near[0]}`?" if near else f"known are {', '.join(known)}"
    return f"{place}: `{name}` is no {kind}; {remedy}"


class BusOptions(OptionsModel):
    """The options of one bus. The bus is on as soon as one of them is given."""
