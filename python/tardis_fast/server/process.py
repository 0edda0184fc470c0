"""What the operating system says of this process."""

from __future__ import annotations

import os
import time
from pathlib import Path

_STARTED = time.monotonic()
_KB_PER_MB = 1024


def uptime_seconds() -> float:
    """Return how long ago this module was loaded, which the server does when it starts."""
    return time.monotonic() - _STARTED


def cpu_seconds() -> float:
    """Return the time this process kept processors busy."""
    times = os.times()
    return times.user + times.system


def memory_mb() -> dict[str, float]:
    """Return the memory of this process by kind, as /proc names them; empty where there is none."""
    try:
        lines = Path("/proc/self/status").read_text("ascii").splitlines()
    except OSError:
        return {}
    pairs = (line.split(":", 1) for line in lines if line.endswith(" kB"))
    return {name: round(int(value.split()[0]) / _KB_PER_MB, 1) for name, value in pairs}
