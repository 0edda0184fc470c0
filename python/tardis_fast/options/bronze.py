"""The options of encoding."""

from collections.abc import Mapping
from typing import Any, ClassVar

from tardis_fast._core import BronzeEncoder, ConfigError, TardisFastError
from tardis_fast.options.base import OptionsModel, option
from tardis_fast.options.forms import Pairs, Text


class BronzeOptions(OptionsModel):
    """Encoding: what the events say about where they come from."""

    section: ClassVar[str] = "bronze"

    source: Text = option("Producer that the events name.", default="tardis-fast")
    origin: Text = option(
        "How the events came to be.",
        default="unspecified",
        metavar="unspecified|realtime|replay|archive",
    )
    meta: Pairs = option("Pairs for every event's meta.", metavar="KEY:VALUE,...", in_help=True)
    book_changes: Text = option(
        "Events of a book change: one a level, or one.",
        default="level",
        metavar="level|message",
        in_help=True,
    )

    def encoder(
        self, *, origin: str | None = None, meta: Mapping[str, str] | None = None
    ) -> BronzeEncoder:
        """Return a new encoder with these options.

        `origin` holds where the options name none; `meta` comes on top of theirs.
        """
        values: dict[str, Any] = {known.key: value for known, value in self.given()}
        if origin is not None:
            values.setdefault("origin", origin)
        values["meta"] = dict(self._meta_pairs(values.get("meta", ()))) | dict(meta or {})
        refusal = None
        try:
            return BronzeEncoder(**values)
        except TardisFastError as error:
            refusal = str(error)
        raise ConfigError(refusal)

    def with_session(self, session: str) -> "BronzeOptions":
        """Return the same options for a part of a session; one that is named already stays."""
        values: dict[str, Any] = {known.field: value for known, value in self.given()}
        meta = dict(self._meta_pairs(values.get("meta", ())))
        meta.setdefault("session_id", session)
        return BronzeOptions(**values | {"meta": meta})

    @staticmethod
    def _meta_pairs(meta: str | tuple[tuple[str, str], ...]) -> list[tuple[str, str]]:
        """Return the pairs of `meta`; the core takes no text here, as it does for buses."""
        if not isinstance(meta, str):
            return list(meta)
        pairs = []
        for entry in meta.split(",") if meta.strip() else []:
            key, colon, value = entry.partition(":")
            if not colon:
                raise ConfigError(
                    f"--meta: `{entry.strip()}` has no colon; write key:value,key:value"
                )
            pairs.append((key.strip(), value.strip()))
        return pairs
