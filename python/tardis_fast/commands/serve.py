"""`tardis-fast serve`: the server, until a signal stops it."""

import asyncio
import signal
import sys
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

import tardis_fast
from tardis_fast import event_loop
from tardis_fast._core import TardisFastError
from tardis_fast.cluster import Cluster, HeldPorts, default_processes
from tardis_fast.commands.option_flags import BusCommand, options_of, settings_of
from tardis_fast.logs import configure_log
from tardis_fast.options import (
    BUSES,
    BronzeOptions,
    DeliveryOptions,
    FeedOptions,
    LogOptions,
    ServerOptions,
    Settings,
)

if TYPE_CHECKING:
    from tardis_fast.machine import TardisMachine
    from tardis_fast.publisher import Publisher

_EXIT_LOST = 1
_EXIT_CONFIGURATION = 2
_EXIT_CANNOT_LISTEN = 3
_STOPPING = (signal.SIGINT, signal.SIGTERM)
_STANDARD_INPUT = 0


class CannotServeError(click.ClickException):
    """Somebody else has a port, or the address is none of this computer's."""

    exit_code = _EXIT_CANNOT_LISTEN

    def __init__(self, error: TardisFastError) -> None:
        super().__init__(f"{error}; give another --port or --host")


@click.command(cls=BusCommand)
@options_of(ServerOptions, FeedOptions, *BUSES, DeliveryOptions, BronzeOptions, LogOptions)
@click.option("--cluster-member", "cluster_dir", metavar="DIR", hidden=True)
@click.pass_context
def serve(context: click.Context, /, *, cluster_dir: str | None, **_: object) -> None:
    """Serve replays and live streams over HTTP and WebSocket.

    SIGTERM or SIGINT stops it: no new requests, running ones are ended, buses are drained. The
    second one ends it at once.

    Ends with 0 once stopped, 1 if events were lost, 2 if the configuration cannot be used, 3 if
    it cannot listen.
    """
    settings = settings_of(context)
    configure_log(settings.log, debug=settings.server.debug)
    if settings.server.cluster_mode and cluster_dir is None:
        sys.exit(_run_cluster(settings))
    from tardis_fast.machine import TardisMachine  # noqa: PLC0415 - other commands need no server

    machine = TardisMachine.of_settings(settings)
    sys.exit(event_loop.run(_serve(machine, settings, cluster_dir)))


async def _serve(machine: "TardisMachine", settings: Settings, cluster_dir: str | None) -> int:
    from tardis_fast.machine import CannotListenError  # noqa: PLC0415 - as above

    server = settings.server
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in _STOPPING:
        loop.add_signal_handler(number, stopping.set)
    is_member = cluster_dir is not None
    if is_member:
        loop.add_reader(_STANDARD_INPUT, _stop_at_end_of_input, loop, stopping)
    try:
        await machine.start(server.port, reuse_port=is_member, cluster_dir=cluster_dir)
        _say_where(server.host, machine.port)
        await stopping.wait()
    except CannotListenError as error:
        raise CannotServeError(error) from None
    finally:
        for number in _STOPPING:
            loop.remove_signal_handler(number)
            # Draining has a time-out of its own; a signal during it ends the program at once.
            signal.signal(number, signal.SIG_DFL)
        await machine.stop()
    return _EXIT_LOST if _events_are_lost(machine.publisher) else 0


def _stop_at_end_of_input(loop: asyncio.AbstractEventLoop, stopping: asyncio.Event) -> None:
    loop.remove_reader(_STANDARD_INPUT)
    stopping.set()


def _say_where(host: str, port: int) -> None:
    place = f"[{host}]" if ":" in host else host
    click.echo(f"tardis-fast {tardis_fast.__version__} at http://{place}:{port}")


def _events_are_lost(publisher: "Publisher | None") -> bool:
    if publisher is None:
        return False
    # Closed already by the machine; this asks for what was left.
    lost = any(left.left and not left.kept_in for left in publisher.close().values())
    return lost or any(bus.dropped for bus in publisher.stats().values())


def _run_cluster(settings: Settings) -> int:
    server = settings.server
    try:
        ports = HeldPorts(server.host, server.port)
    except TardisFastError as error:
        raise CannotServeError(error) from None
    if server.clear_cache:
        from tardis_fast.replaying import clear_cache  # noqa: PLC0415 - seldom asked for

        clear_cache(feed=settings.archive)
    count = server.processes or default_processes()
    try:
        with TemporaryDirectory(prefix="tardis-fast-") as shared:
            # Given last, these beat what was given to the parent.
            own = ["--cluster-member", shared, "--no-clear-cache", "--port", str(ports.port)]
            member = [sys.executable, "-m", "tardis_fast", *sys.argv[1:], *own]
            return asyncio.run(_cluster([member] * count, server.host, ports.port))
    finally:
        ports.close()


async def _cluster(members: list[list[str]], host: str, port: int) -> int:
    cluster = Cluster(
        members,
        on_ready=lambda: _say_where(host, port),
        final_codes=frozenset({_EXIT_CONFIGURATION, _EXIT_CANNOT_LISTEN}),
    )
    loop = asyncio.get_running_loop()
    for number in _STOPPING:
        loop.add_signal_handler(number, cluster.stop)
    return await cluster.run()
