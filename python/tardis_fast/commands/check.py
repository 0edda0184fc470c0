"""`tardis-fast check`: is the configuration right, and does every bus answer."""

import sys

import click
from rich.console import Console
from rich.table import Table

from tardis_fast.bus_stats import BusCheck
from tardis_fast.commands.option_flags import BusCommand, options_of, settings_of
from tardis_fast.options import BUSES, BronzeOptions, DeliveryOptions
from tardis_fast.publisher import check_buses


@click.command(cls=BusCommand)
@options_of(*BUSES, DeliveryOptions)
@click.pass_context
def check(context: click.Context, /, **_: object) -> None:
    """Check the configuration and try the connection of every bus.

    Ends with 0 if every bus answered, 1 if one did not, 2 if the configuration cannot be used.
    """
    settings = settings_of(context, BronzeOptions)
    settings.bronze.encoder()
    checks = check_buses(settings)
    table = Table()
    for name in ("bus", "state", "peer", "remark"):
        table.add_column(name, overflow="fold")
    for found in checks:
        table.add_row(found.bus, _state(found), found.peer or "", _remark(found))
    Console(highlight=False, markup=False).print(table)
    sys.exit(0 if all(found.ok for found in checks) else 1)


def _state(found: BusCheck) -> str:
    return "ok" if found.ok else "failed"


def _remark(found: BusCheck) -> str:
    return "\n".join([*([found.error] if found.error else []), *found.warnings])
