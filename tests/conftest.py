"""Options of the test run."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

pytest_plugins = ["brokers.fixtures"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that tests ask for."""
    parser.addoption(
        "--faults",
        choices=["short", "long"],
        default="short",
        help="how many events the fault tests send, and how long their faults last",
    )
    parser.addoption(
        "--update-screenshots",
        action="store_true",
        help="write the pictures of the page in docs/images anew",
    )
    parser.addoption(
        "--spark",
        choices=["short", "long"],
        default="short",
        help="how many rows the Spark tests publish: thousands, or a million to Kafka and Redis",
    )
    parser.addoption(
        "--load",
        choices=["short", "long"],
        default="short",
        help="how many clients the server has at once",
    )
