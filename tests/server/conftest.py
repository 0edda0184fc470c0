"""Machines for tests of the server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from server.running import RunningMachine
from tardis_fast import TardisMachine

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def sample_machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMachine]:
    """Serve the sample market, without a bus."""
    cache = tmp_path_factory.mktemp("cache")
    with RunningMachine(TardisMachine(cache_dir=cache, server={"sample": True})) as running:
        yield running
