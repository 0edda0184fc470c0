"""The command line, run as a person runs it."""

import subprocess
import sysconfig
from pathlib import Path

COMMAND = Path(sysconfig.get_path("scripts")) / "tardis-fast"


def run(*arguments: str) -> str:
    """Run `tardis-fast` and return what it prints."""
    done = subprocess.run([COMMAND, *arguments], check=True, capture_output=True, text=True)
    return done.stdout


def test_help() -> None:
    assert run("--help") == (
        "Usage: tardis-fast [OPTIONS] COMMAND [ARGS]...\n"
        "\n"
        "  Crypto market data into programs, event buses and the lakehouse.\n"
        "\n"
        "Options:\n"
        "  --version   Show the version and exit.\n"
        "  -h, --help  Show this message and exit.\n"
        "\n"
        "Commands:\n"
        "  check        Check the configuration and try the connection of every bus.\n"
        "  clear-cache  Remove slices of the archive from the cache.\n"
        "  completion   Print the completion script of a shell.\n"
        "  decode       Show Bronze events as JSON lines.\n"
        "  demo         Show everything at work on a made-up market.\n"
        "  publish      Publish a range of the archive, or files, to buses.\n"
        "  sample-api   Serve a made-up market as the Tardis API serves the archive.\n"
        "  serve        Serve replays and live streams over HTTP and WebSocket.\n"
    )
