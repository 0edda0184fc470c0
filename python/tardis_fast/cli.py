"""The command line."""

import click

import tardis_fast


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(tardis_fast.__version__, prog_name="tardis-fast")
def main() -> None:
    """Crypto market data into programs, event buses and the lakehouse."""


@main.command()
@click.option(
    "--chunks",
    type=click.IntRange(min=1),
    default=30,
    show_default=True,
    help="How many chunks of sample messages are encoded.",
)
def demo(chunks: int) -> None:
    """Take sample messages through Bronze and Arrow and back, and show what came of it."""
    from tardis_fast.demo import run  # noqa: PLC0415 - other commands need not load it

    run(chunks)
