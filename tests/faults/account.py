"""What arrived, held against what was published."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True)
class Account:
    """The arrived events of numbers from 1 on."""

    events: int
    duplicates: int
    missing: list[int]
    overtaken: list[tuple[str, int, int]]
    """Key, number, and the later number of the key that had arrived before it."""

    @property
    def is_whole(self) -> bool:
        """Whether everything arrived, in the order of its key."""
        return not self.missing and not self.overtaken


def account(arrived: Iterable[tuple[str, int]], expected: range) -> Account:
    """Look at events in the order in which they arrived; a number counts when it first does."""
    seen: set[int] = set()
    last: dict[str, int] = {}
    duplicates = 0
    overtaken = []
    for key, number in arrived:
        if number in seen:
            duplicates += 1
            continue
        seen.add(number)
        before = last.get(key, -1)
        if number < before:
            overtaken.append((key, number, before))
        last[key] = max(before, number)
    missing = sorted(set(expected) - seen)
    return Account(len(seen), duplicates, missing[:20], overtaken[:20])
