"""Machines for tests of the server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from server.running import RunningMachine
from tardis_fast import TardisMachine

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def sample_machine() -> Iterator[RunningMachine]:
    """Serve the sample market, without a bus."""
    with RunningMachine(TardisMachine(server={"sample": True})) as running:
        yield running
