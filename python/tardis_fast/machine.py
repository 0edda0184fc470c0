"""`TardisMachine`: the server, its publisher and its archive, started and stopped together."""

from __future__ import annotations

import asyncio
import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aiohttp import web
from typing_extensions import Self

from tardis_fast._core import ConfigError, SampleMarket, TardisFastError
from tardis_fast.options import DeliveryOptions, FeedOptions, ServerOptions, Settings
from tardis_fast.publisher import Publisher, Remainder
from tardis_fast.replaying import archive_of
from tardis_fast.sample_api import SampleApi
from tardis_fast.sample_exchange import live_variables
from tardis_fast.server.answers import Answers
from tardis_fast.server.request_log import PROTOCOL_LOG
from tardis_fast.server.siblings import Siblings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from tardis_fast.options import (
        KafkaOptions,
        KinesisOptions,
        LakeOptions,
        NatsOptions,
        RedisOptions,
        SqsOptions,
    )

_PORT_TRIES = 50
"""How often a free port whose neighbour is free too is looked for."""
_IDLE_SECONDS = 75.0
"""How long a connection may stay open without a request."""
_SHUTDOWN_SECONDS = 5.0
"""How long connections may take to end once everything on them was ended."""
_LARGEST_PORT = 65_535


class CannotListenError(TardisFastError):
    """Somebody else has the port, or the address is none of this computer's."""

    def __init__(self, host: str, port: int, reason: str) -> None:
        super().__init__(f"cannot listen on {host}:{port}: {reason}")
        self.reason = reason


class TardisMachine:
    """A server with the endpoints of tardis-machine that also publishes, to the buses it is given.

    Buses are given as to `Publisher`; other names are options of delivery. Without a bus there is
    no publisher: no connection, no thread, no log line. `archive` says where data comes from, with
    `api_key` and `cache_dir` as its two most used options, and `server` how it is served.
    """

    def __init__(  # noqa: PLR0913 - the options, by name
        self,
        *,
        api_key: str | None = None,
        cache_dir: str | os.PathLike[str] | None = None,
        clear_cache: bool = False,
        archive: FeedOptions | Mapping[str, Any] | None = None,
        server: ServerOptions | Mapping[str, Any] | None = None,
        event_bus: Mapping[str, Any] | None = None,
        kafka: KafkaOptions | Mapping[str, Any] | None = None,
        kinesis: KinesisOptions | Mapping[str, Any] | None = None,
        sqs: SqsOptions | Mapping[str, Any] | None = None,
        nats: NatsOptions | Mapping[str, Any] | None = None,
        redis: RedisOptions | Mapping[str, Any] | None = None,
        lake: LakeOptions | Mapping[str, Any] | None = None,
        **delivery: Any,  # noqa: ANN401 - DeliveryOptions checks them
    ) -> None:
        buses = {
            "kafka": kafka,
            "kinesis": kinesis,
            "sqs": sqs,
            "nats": nats,
            "redis": redis,
            "lake": lake,
        }
        settings = Settings.of_objects(
            buses,
            event_bus=event_bus,
            delivery=DeliveryOptions.from_keys(delivery),
            archive=archive,
            server=server,
        )
        given = {"api_key": api_key, "cache_dir": cache_dir}
        stronger = {name: value for name, value in given.items() if value is not None}
        self._begin(
            replace(
                settings,
                archive=settings.archive.with_values(**stronger),
                server=settings.server.with_values(
                    **({"clear_cache": True} if clear_cache else {})
                ),
            )
        )

    @classmethod
    def of_settings(cls, settings: Settings) -> TardisMachine:
        """Make a machine from settings that are loaded already."""
        machine = cls.__new__(cls)
        machine._begin(settings)  # noqa: SLF001 - the other way to make one
        return machine

    def _begin(self, settings: Settings) -> None:
        self._settings = settings
        self._publisher = Publisher.of_settings(settings) if settings.buses else None
        self._runners: list[web.BaseRunner] = []
        self._answers: Answers | None = None
        self._sample_cache: tempfile.TemporaryDirectory[str] | None = None
        self._siblings: Siblings | None = None
        self.port = 0
        """The port of HTTP and WebSocket, once started; WebSocket is also on the next one."""

    @property
    def publisher(self) -> Publisher | None:
        """The publisher; `None` if no bus is given."""
        return self._publisher

    @property
    def address(self) -> str:
        """Where HTTP is served."""
        host = self._settings.server.host
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"

    async def start(
        self,
        port: int | None = None,
        *,
        reuse_port: bool = False,
        cluster_dir: str | os.PathLike[str] | None = None,
    ) -> None:
        """Listen on `port`, if not given on that of the options, and on the next one.

        With `reuse_port` several processes may listen on the same ports; those that have the same
        `cluster_dir` answer for one another when they are asked for figures.
        """
        if self._answers is not None:
            raise TardisFastError("the machine is started already; stop it first")
        options = self._settings.server
        try:
            feed, live_variables = await self._sources()
            archive = archive_of(feed)
            if options.clear_cache:
                await asyncio.to_thread(archive.clear_cache)
            answers = Answers(archive, options, self._publisher, live_variables)
            if cluster_dir is not None:
                answers.siblings = self._siblings = Siblings(Path(cluster_dir), answers.figures)
                await self._siblings.start()
            await self._listen(answers, options.port if port is None else port, reuse_port)
        except BaseException:
            await self._stop_listening()
            raise
        self._answers = answers

    async def _sources(self) -> tuple[FeedOptions, dict[str, str]]:
        """Return the options of the archive, and the variables of live streams.

        Both lead to a sample market if that is asked for. What it made up must not lie among slices
        of the archive.
        """
        archive = self._settings.archive
        if not self._settings.server.sample:
            return archive, {}
        self._sample_cache = tempfile.TemporaryDirectory(prefix="tardis-fast-sample-")
        # Nobody waits for slices once sessions are ended, so that these need no time to end.
        runner = web.AppRunner(
            SampleApi(SampleMarket()).application(), handler_cancellation=True, shutdown_timeout=0
        )
        await runner.setup()
        self._runners.append(runner)
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        feed = archive.with_values(
            endpoint=f"http://{host}:{port}/v1", cache_dir=self._sample_cache.name
        )
        return feed, live_variables(f"{host}:{port}")

    async def _listen(self, answers: Answers, port: int, reuse_port: bool) -> None:  # noqa: FBT001 - passed on
        line_size = self._settings.server.max_options_kb << 10
        made = [
            web.ServerRunner(
                web.Server(
                    handler,
                    handler_cancellation=True,
                    access_log=None,
                    logger=PROTOCOL_LOG,
                    keepalive_timeout=_IDLE_SECONDS,
                    max_line_size=line_size,
                ),
                shutdown_timeout=_SHUTDOWN_SECONDS,
            )
            for handler in (answers.http, answers.websocket_port)
        ]
        for runner in made:
            await runner.setup()
        # Before anything else, since they are to be closed first.
        self._runners = made + self._runners
        main, second = made
        host = self._settings.server.host
        for tries_left in reversed(range(_PORT_TRIES if port == 0 else 1)):
            site = web.TCPSite(main, host, port, reuse_port=reuse_port)
            await _bind(site, host, port)
            self.port = main.addresses[0][1]
            next_site = web.TCPSite(second, host, self.port + 1, reuse_port=reuse_port)
            try:
                await _bind(next_site, host, self.port + 1)
            except CannotListenError:
                await site.stop()
                if not tries_left:
                    raise
            else:
                return

    async def stop(self) -> dict[str, Remainder]:
        """End all sessions, deliver what was published, and return what a bus could not deliver.

        Delivering takes at most `drain_timeout` seconds; what is left is spilled.
        """
        if self._answers is not None:
            await self._answers.stop()
            self._answers = None
        await self._stop_listening()
        if self._publisher is None:
            return {}
        return await asyncio.to_thread(self._publisher.close)

    async def _stop_listening(self) -> None:
        if self._siblings is not None:
            await self._siblings.stop()
            self._siblings = None
        for runner in self._runners:
            await runner.cleanup()
        self._runners.clear()
        if self._sample_cache is not None:
            self._sample_cache.cleanup()
            self._sample_cache = None

    def close(self) -> None:
        """Deliver what was published and spill the rest, for a machine that was not started."""
        if self._publisher is not None:
            self._publisher.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop()


async def _bind(site: web.TCPSite, host: str, port: int) -> None:
    if port > _LARGEST_PORT:
        raise ConfigError(f"--port: {port} is no port; WebSocket needs the one after HTTP's")
    try:
        await site.start()
    except OSError as error:
        # The loop's own text names the address again.
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
        raise CannotListenError(host, port, reason) from None
