"""What all options share: how a field is declared, read, shown and handed to the core.

A field of a model is the one declaration of an option. Its flag, environment name, key in the
configuration file, help text and place in the core's JSON are derived from it here. The forms below
check that a value has the right shape; what it means is checked by the core, with the same words.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, SecretStr, ValidationError

from tardis_fast._core import ConfigError

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

_TRUTHS = {"true": True, "1": True, "yes": True, "on": True}
_FALSEHOODS = {"false": False, "0": False, "no": False, "off": False}
_SWITCH_WORDS = _TRUTHS | _FALSEHOODS
_LARGEST_PORT = 65_535
_USER_IN_URL = re.compile(r"://[^/@,\s]*@")


@dataclass(frozen=True)
class Form:
    """How a value is written on the command line."""

    metavar: str
    repeats: bool = False
    """Whether the flag may be given more than once; the texts are joined by commas."""
    is_switch: bool = False
    is_secret: bool = False


def shown(value: object) -> str:
    """Return a value for an error text: what may be a password in a URL is not in it."""
    text = value if isinstance(value, str) else repr(value)
    return _USER_IN_URL.sub("://***@", text)


def _read_text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise ValueError(f"`{shown(value)}` is not text; give text")


def _read_path(value: object) -> str | None:
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    return _read_text(value)


def _read_secret(value: object) -> SecretStr | None:
    if value is None or isinstance(value, SecretStr):
        return value
    if isinstance(value, str):
        return SecretStr(value)
    raise ValueError("its value is not text; give text")


def _read_whole(value: object) -> int | None:
    if value is None:
        return None
    try:
        if isinstance(value, bool) or not isinstance(value, (int, str)):
            raise TypeError  # noqa: TRY301 - one refusal for all that is no whole number
        number = int(value)
    except (TypeError, ValueError):
        raise ValueError(f"`{shown(value)}` is not a whole number; give one") from None
    if number < 0:
        raise ValueError(f"{number} is out of range; give 0 or more")
    return number


def _read_port(value: object) -> int | None:
    port = _read_whole(value)
    if port is not None and not 0 < port <= _LARGEST_PORT:
        raise ValueError(f"{port} is out of range; give 1 to {_LARGEST_PORT}")
    return port


def _read_seconds(value: object) -> float | None:
    if value is None:
        return None
    try:
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            raise TypeError  # noqa: TRY301 - as above
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"`{shown(value)}` is not a number; give seconds") from None
    if not 0 <= number <= 1e6:  # noqa: PLR2004 - about twelve days; NaN is refused as well
        raise ValueError(f"{value} is out of range; give 0 to 1000000")
    return number


def _read_switch(value: object) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    word = _SWITCH_WORDS.get(str(value).strip().lower())
    if word is None:
        raise ValueError(f"`{shown(value)}` is neither true nor false; write one of the two")
    return word


def _read_names(value: object) -> str | tuple[str, ...] | None:
    if value is None or isinstance(value, str):
        return value
    if not isinstance(value, Sequence) or not all(isinstance(name, str) for name in value):
        raise ValueError(f"`{shown(value)}` is no list of texts; write a,b or give a list")
    return tuple(value)


def _pairs(value: object) -> tuple[tuple[str, str], ...] | None:
    """Return the pairs of a mapping or a list of pairs; `None` if it is neither."""
    entries: Any = list(value.items()) if isinstance(value, Mapping) else value
    if not isinstance(entries, Sequence) or isinstance(entries, (str, bytes)):
        return None
    pairs = []
    for entry in entries:
        if not isinstance(entry, Sequence) or isinstance(entry, (str, bytes)) or len(entry) != 2:  # noqa: PLR2004
            return None
        key, text = entry[0], entry[1]
        if isinstance(text, SecretStr):
            text = text.get_secret_value()
        if isinstance(text, bool):
            text = "true" if text else "false"
        elif isinstance(text, (int, float)):
            text = str(text)
        if not isinstance(key, str) or not isinstance(text, str):
            return None
        pairs.append((key, text))
    return tuple(pairs)


def _read_pairs(value: object) -> str | tuple[tuple[str, str], ...] | None:
    if value is None or isinstance(value, str):
        return value
    pairs = _pairs(value)
    if pairs is None:
        raise ValueError(
            f"`{shown(value)}` has no pairs of texts; write a:b,c:d or give a mapping of texts"
        )
    return pairs


def _read_properties(value: object) -> SecretStr | tuple[tuple[str, SecretStr], ...] | None:
    """Read properties of which some may be passwords, so no value is shown."""
    if value is None or isinstance(value, SecretStr):
        return value
    if isinstance(value, str):
        return SecretStr(value)
    pairs = _pairs(value)
    if pairs is None:
        raise ValueError("it has no pairs of texts; write k=v,k=v or give a mapping of texts")
    return tuple((key, SecretStr(text)) for key, text in pairs)


# The types of fields: what a caller may give, and how it is read and written.
Text = Annotated[str | None, PlainValidator(_read_text), Form("TEXT")]
PathText = Annotated[str | Path | None, PlainValidator(_read_path), Form("PATH")]
Secret = Annotated[
    str | SecretStr | None, PlainValidator(_read_secret), Form("TEXT", is_secret=True)
]
Whole = Annotated[int | None, PlainValidator(_read_whole), Form("N")]
Port = Annotated[int | None, PlainValidator(_read_port), Form("N")]
Seconds = Annotated[float | None, PlainValidator(_read_seconds), Form("SECONDS")]
Switch = Annotated[bool | None, PlainValidator(_read_switch), Form("", is_switch=True)]
Names = Annotated[
    str | Sequence[str] | None, PlainValidator(_read_names), Form("A,B", repeats=True)
]
Pairs = Annotated[
    str | Mapping[str, str] | Sequence[tuple[str, str]] | None,
    PlainValidator(_read_pairs),
    Form("A:B,C:D", repeats=True),
]
Properties = Annotated[
    str | Mapping[str, str] | Sequence[tuple[str, str]] | None,
    PlainValidator(_read_properties),
    Form("K=V,K=V", repeats=True, is_secret=True),
]


def option(  # noqa: PLR0913 - each is one fact about an option
    description: str,
    *,
    default: str | None = None,
    metavar: str | None = None,
    key: str | None = None,
    aliases: tuple[str, ...] = (),
    for_core: bool = True,
) -> Any:  # noqa: ANN401 - the type of the field it declares
    """Declare an option.

    `default` is what the core takes when the option is not given; `key` is the option's name where
    that is no Python name; `aliases` are other keys it may be written by.
    """
    facts: dict[str, Any] = {
        "default": default,
        "metavar": metavar,
        "key": key,
        "aliases": list(aliases),
        "for_core": for_core,
    }
    return Field(default=None, description=description, json_schema_extra={"option": facts})


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
        try:
            super().__init__(**values)
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
