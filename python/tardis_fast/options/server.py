"""The options of the server."""

from typing import Annotated, ClassVar

from pydantic import PlainValidator, SecretStr

from tardis_fast.options.base import OptionsModel, option
from tardis_fast.options.forms import (
    Count,
    Form,
    SetCount,
    SetSeconds,
    SetSwitch,
    SetText,
    read_port_to_listen_on,
    read_token,
)

SetPort = Annotated[int, PlainValidator(read_port_to_listen_on), Form("N")]
Token = Annotated[str | SecretStr | None, PlainValidator(read_token), Form("TEXT", is_secret=True)]


class ServerOptions(OptionsModel):
    """Server: where it listens, who may ask, and how much at once."""

    section: ClassVar[str] = "server"

    port: SetPort = option(
        "HTTP and WebSocket; the next is WebSocket too.",
        value=8000,
        in_help=True,
    )
    host: SetText = option("Address to listen on.", value="127.0.0.1", in_help=True)
    auth_token: Token = option("Bearer token for all but /health-check.", in_help=True)
    sample: SetSwitch = option(
        "Serve the sample market instead of the archive.", value=False, in_help=True
    )
    clear_cache: SetSwitch = option("Empty the cache at the start.", value=False, in_help=True)
    cluster_mode: SetSwitch = option(
        "Run several processes on the same ports.", value=False, in_help=True
    )
    processes: Count = option("How many, in cluster mode.", default="one a core", in_help=True)
    max_sessions: SetCount = option("Replays and streams at once.", value=1000, in_help=True)
    max_options_kb: SetCount = option("Size of a request's options, at most.", value=64)
    slow_client_timeout: SetSeconds = option(
        "After how long a client is closed that takes nothing of its live stream.",
        default="135",
        value=135.0,
    )
    request_log: SetSwitch = option("Log every request.", value=True, in_help=True)
    debug: SetSwitch = option("Log more, for those who look for an error.", value=False)

    @property
    def token(self) -> str | None:
        """The bearer token in plain text: not to be logged. `None` if nobody is asked for one."""
        token = self.auth_token
        return token.get_secret_value() if isinstance(token, SecretStr) else token
