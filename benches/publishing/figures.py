"""What a contender needed for its events."""

from __future__ import annotations

import resource
import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Figures:
    """One run of a contender, or the best of several."""

    rate: float
    """Events a second, from the first that is encoded to the last acknowledgement."""
    cpu: float
    """Seconds of CPU, of all threads of the contender's process, for a million events."""

    def best(self, other: Figures) -> Figures:
        """Return the better of each figure: what is worse was disturbed by others."""
        return Figures(max(self.rate, other.rate), min(self.cpu, other.cpu))


class Clock:
    """Measures this process, all its threads, from its making to `figures`."""

    def __init__(self) -> None:
        self._cpu = _cpu_seconds()
        self._started = time.perf_counter()

    def figures(self, events: int) -> Figures:
        """Stop and return what `events` took."""
        seconds = time.perf_counter() - self._started
        cpu = _cpu_seconds() - self._cpu
        return Figures(events / seconds, cpu / events * 1_000_000)


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
