"""The command line."""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click

import tardis_fast

_LOADED_ON_USE = (
    "check",
    "clear-cache",
    "completion",
    "decode",
    "demo",
    "publish",
    "sample-api",
    "serve",
)
"""Commands in `tardis_fast.commands`, so that none waits for what another one imports."""
_EXIT_USAGE = 2
_EXIT_ABORTED = 130
_EXIT_BROKEN_PIPE = 141


class Commands(click.Group):
    """Commands that are loaded on use, and errors in one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return sorted([*super().list_commands(ctx), *_LOADED_ON_USE])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, loaded if need be."""
        if cmd_name not in _LOADED_ON_USE:
            return super().get_command(ctx, cmd_name)
        module = cmd_name.replace("-", "_")
        command: click.Command = getattr(import_module(f"tardis_fast.commands.{module}"), module)
        return command

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        *_: Any,  # noqa: ANN401 - click's own
        **extra: Any,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401
        """Run, print an error as one line, and end with the command's exit code."""
        extra["standalone_mode"] = False
        try:
            exit_code = super().main(args, prog_name, **extra)
        except tardis_fast.ConfigError as error:
            _fail(str(error), _EXIT_USAGE)
        except tardis_fast.TardisFastError as error:
            _fail(str(error), 1)
        except click.ClickException as error:
            _fail(error.format_message(), error.exit_code)
        except click.Abort:
            sys.exit(_EXIT_ABORTED)
        except BrokenPipeError:
            # Whoever read the output went away; the interpreter must not flush into nothing.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(_EXIT_BROKEN_PIPE)
        sys.exit(exit_code if isinstance(exit_code, int) else 0)


def _fail(text: str, exit_code: int) -> None:
    click.echo(f"error: {text}", err=True)
    sys.exit(exit_code)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(tardis_fast.__version__, prog_name="tardis-fast")
def main() -> None:
    """Crypto market data into programs, event buses and the lakehouse."""
