"""What a publisher has to tell, moved into Python's `logging`.

Records go to `tardis_fast.bus.NAME` and carry `bus`, `event_kind` (one word: `connected`,
`dead_letter`) and `fields` (a dict of texts). None holds a secret.
"""

import logging
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tardis_fast import _core

_PATIENCE_SECONDS = 5.0

# A library leaves it to the program where records go.
logging.getLogger("tardis_fast").addHandler(logging.NullHandler())


def start(core: "_core.Publisher") -> threading.Thread:
    """Start the thread that logs what `core` tells; it ends when `core` is closed."""
    # The thread knows the core only, so that a forgotten publisher can still be collected.
    thread = threading.Thread(target=_move, args=(core,), name="tardis-fast-log", daemon=True)
    thread.start()
    return thread


def _move(core: "_core.Publisher") -> None:
    while (notices := core.take_notices(_PATIENCE_SECONDS)) is not None:
        for level, bus, kind, message, fields in notices:
            extra = {"bus": bus, "event_kind": kind, "fields": fields}
            logging.getLogger(f"tardis_fast.bus.{bus}").log(level, "%s", message, extra=extra)
