"""Flags from the declared options: made for a command, read back, and shown with `--help-bus`."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from tardis_fast.options import Settings, load_settings
from tardis_fast.options.base import Option, OptionsModel
from tardis_fast.options.settings import SECTIONS

SHOWN = {"state_dir", "drain_timeout", "source", "origin", "meta", "book_changes"}
"""Options that plain `--help` shows; those of a bus are too many for one screen."""
EXAMPLES = {
    "kafka": "--kafka-brokers HOST:PORT --kafka-topic NAME",
    "kinesis": "--kinesis-stream NAME --kinesis-region REGION",
    "sqs": "--sqs-queue-url URL --sqs-region REGION",
    "nats": "--nats-servers URL --nats-subject NAME",
    "redis": "--redis-url URL --redis-stream NAME",
    "lake": "--lake-dir PATH",
}
"""The least that a bus needs."""

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


class BusCommand(click.Command):
    """A command whose help ends with the buses."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Name the buses and where their options are shown."""
        del ctx
        with formatter.section("Buses (each is on when one of its options is given)"):
            formatter.write_dl([(bus, EXAMPLES[bus]) for bus in EXAMPLES])
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(
                "Each option is also an environment variable (--kafka-topic: TM_KAFKA_TOPIC) and a "
                "key of the configuration file ([kafka] topic). A flag beats the environment, and "
                "that the file."
            )


def bus_options(*, with_encoding: bool) -> Callable[[Decorated], Decorated]:
    """Give a command the options of all buses, of delivery and, if wanted, of encoding."""

    def decorate(command: Decorated) -> Decorated:
        # click lists options in the order of decorators, which is from the last to the first.
        command = click.option(
            "--help-bus",
            type=click.Choice([model.section for model in SECTIONS]),
            is_eager=True,
            expose_value=False,
            callback=_show_section,
            help="Show the options of a bus, of delivery or of encoding, and exit.",
        )(command)
        for model in reversed(SECTIONS):
            if with_encoding or model.section != "bronze":
                for known in reversed(model.options()):
                    command = _click_option(known)(command)
        return click.option(
            "--config",
            type=click.Path(path_type=Path),
            envvar="TM_CONFIG",
            metavar="FILE",
            help="Options from a TOML file.",
        )(command)

    return decorate


def settings_of(context: click.Context) -> Settings:
    """Return the settings that flags, environment and configuration file give together."""
    flags: dict[str, dict[str, object]] = {}
    for model in SECTIONS:
        for known in model.options():
            parameter = _parameter_name(known)
            if context.get_parameter_source(parameter) is ParameterSource.COMMANDLINE:
                value = context.params[parameter]
                joined = ",".join(value) if known.form.repeats else value
                flags.setdefault(model.section, {})[known.key] = joined
    return load_settings(flags, os.environ, context.params["config"])


def _parameter_name(known: Option) -> str:
    return f"{known.section}__{known.key}"


def _click_option(known: Option) -> Callable[[Decorated], Decorated]:
    facts: dict[str, Any] = {
        "default": None,
        "hidden": bool(known.prefix) or known.field not in SHOWN,
    }
    if not known.form.is_switch:
        # Values stay texts: one reader checks them, wherever they come from.
        facts |= {"type": str, "metavar": known.form.metavar, "multiple": known.form.repeats}
    return click.option(*_declarations(known), _parameter_name(known), help=_help(known), **facts)


def _declarations(known: Option) -> list[str]:
    if known.form.is_switch:
        return [f"{flag}/--no-{flag.removeprefix('--')}" for flag in known.flags]
    return list(known.flags)


def _help(known: Option) -> str:
    default = f"  [default: {known.default}]" if known.default else ""
    return known.description + default


def _show_section(context: click.Context, _: click.Parameter, section: str | None) -> None:
    if section is None:
        return
    model: type[OptionsModel] = next(model for model in SECTIONS if model.section == section)
    formatter = context.make_formatter()
    formatter.write_text((model.__doc__ or "").strip())
    with formatter.section("Options"):
        formatter.write_dl(
            [
                (f"{', '.join(_declarations(known))} {known.form.metavar}".strip(), _help(known))
                for known in model.options()
            ]
        )
    example = model.options()[0]
    formatter.write_paragraph()
    formatter.write_text(
        f"{example.flag} is also {example.environment_name_of(example.key)} in the environment and "
        f"{example.key} under [{section}] in the configuration file; so are the others."
    )
    click.echo(formatter.getvalue().rstrip("\n"))
    context.exit()
