"""The options of delivery, which all buses share."""

import os
from pathlib import Path
from typing import ClassVar

from tardis_fast._core import ConfigError
from tardis_fast.options.base import OptionsModel, option
from tardis_fast.options.forms import PathText, Seconds, Switch, Text, Whole

DRAIN_TIMEOUT_SECONDS = 30.0


class DeliveryOptions(OptionsModel):
    """Delivery: memory, spill, retries and dead letters, the same for all buses."""

    section: ClassVar[str] = "delivery"

    max_block_ms: Whole = option(
        "How long publishing waits for room in memory before events go to disk.", default="1000"
    )
    overflow: Text = option(
        "When the disk's share is full as well: wait, or drop and count.",
        default="block",
        metavar="block|drop",
    )
    max_memory_mb: Whole = option("Memory for waiting events, per bus.", default="128")
    state_dir: PathText = option(
        "Where spill and dead letters are kept.",
        default="$XDG_STATE_HOME/tardis-fast or ~/.local/state/tardis-fast",
        for_core=False,
        in_help=True,
    )
    spill: Switch = option("Let events wait on disk.", default="on", for_core=False)
    spill_dir: PathText = option("Where they wait.", default="spill in the state directory")
    spill_max_mb: Whole = option("Disk for waiting events, per bus.", default="10240")
    dead_letter_dir: PathText = option(
        "Where events are kept that cannot be delivered.",
        default="dead-letters in the state directory",
    )
    delivery_timeout_ms: Whole = option(
        "After how long an event becomes a dead letter.", default="3600000"
    )
    retry_backoff_ms: Whole = option("Wait before the first retry.", default="50")
    retry_backoff_max_ms: Whole = option("Wait between retries, at most.", default="10000")
    drain_timeout: Seconds = option(
        "How long to wait for buses at the end.",
        default=f"{DRAIN_TIMEOUT_SECONDS:.0f}",
        for_core=False,
        in_help=True,
    )

    @property
    def drain_seconds(self) -> float:
        """How long closing waits for acknowledgements."""
        return DRAIN_TIMEOUT_SECONDS if self.drain_timeout is None else self.drain_timeout

    def core_values(self) -> dict[str, object]:
        """Return what the core is told, with the directories that follow from the state's."""
        values = super().core_values()
        if self.spill is False and self.spill_dir is not None:
            raise ConfigError(
                "--no-spill: it contradicts --spill-dir: events cannot wait in a directory that is "
                "not used; keep one of them"
            )
        state = Path(self.state_dir) if self.state_dir is not None else default_state_dir()
        if self.spill is not False:
            values.setdefault("spill_dir", str(state / "spill"))
        values.setdefault("dead_letter_dir", str(state / "dead-letters"))
        return values


def default_state_dir() -> Path:
    """Return the directory for state that the XDG base directory specification gives."""
    base = os.environ.get("XDG_STATE_HOME")
    return Path(base or Path.home() / ".local" / "state") / "tardis-fast"
