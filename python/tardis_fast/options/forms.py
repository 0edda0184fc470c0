"""The forms of values: what may be given for an option, how it is read, and how it is written.

The readers check that a value has the right shape; what it means to a bus is checked by the core,
with the same words.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import PlainValidator, SecretStr

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


def read_token(value: object) -> SecretStr | None:
    """Read a secret that lets somebody in: an empty one would let in anybody, or nobody."""
    token = _read_secret(value)
    if token is not None and not token.get_secret_value().strip():
        raise ValueError("it is empty; give a token, or leave the option out")
    return token


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


def _read_count(value: object) -> int | None:
    number = _read_whole(value)
    if number == 0:
        raise ValueError("0 is out of range; give 1 or more")
    return number


def _read_port(value: object) -> int | None:
    port = _read_whole(value)
    if port is not None and not 0 < port <= _LARGEST_PORT:
        raise ValueError(f"{port} is out of range; give 1 to {_LARGEST_PORT}")
    return port


def read_port_to_listen_on(value: object) -> int | None:
    """Read a port that may also be 0, which takes a free one."""
    is_any = isinstance(value, (int, str)) and not isinstance(value, bool) and str(value) == "0"
    return 0 if is_any else _read_port(value)


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


def read_one_of(*words: str) -> Callable[[object], str]:
    """Return the reader of an option that is one of a few words."""

    def read(value: object) -> str:
        if value not in words:
            raise ValueError(f"`{shown(value)}` is not known; use {' or '.join(words)}")
        return str(value)

    return read


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
Count = Annotated[int | None, PlainValidator(_read_count), Form("N")]
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
# The same for options that always have a value, since Python is who uses them.
SetText = Annotated[str, PlainValidator(_read_text), Form("TEXT")]
SetCount = Annotated[int, PlainValidator(_read_count), Form("N")]
SetSeconds = Annotated[float, PlainValidator(_read_seconds), Form("SECONDS")]
SetSwitch = Annotated[bool, PlainValidator(_read_switch), Form("", is_switch=True)]
