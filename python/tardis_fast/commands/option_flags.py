"""Flags from the declared options: made for a command, read back, and shown with `--help-bus`."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from tardis_fast.options import Settings, load_settings
from tardis_fast.options.base import Option, OptionsModel
from tardis_fast.options.settings import SECTIONS

EXAMPLES = {
    "kafka": "--kafka-brokers HOST:PORT --kafka-topic NAME",
    "kinesis": "--kinesis-stream NAME --kinesis-region REGION",
    "sqs": "--sqs-queue-url URL --sqs-region REGION",
    "nats": "--nats-servers URL --nats-subject NAME",
    "redis": "--redis-url URL --redis-stream NAME",
    "lake": "--lake-dir PATH",
}
"""The least that a bus needs."""

_FLAG_WIDTH = 24
_LONGEST_DEFAULT = 15
"""Plain help has one screen; longer defaults are told with `--help-bus`."""

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


class DeclaredOption(click.Option):
    """A declared option; in plain help it is short."""

    def __init__(self, *arguments: Any, known: Option, **facts: Any) -> None:  # noqa: ANN401
        super().__init__(*arguments, **facts)
        self._known = known

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the flag and its help; of a switch that is off, only how it is turned on."""
        del ctx
        known = self._known
        if self.hidden:
            return None
        flag = f"{known.flag} {known.form.metavar}".strip()
        if known.form.is_switch:
            is_on = known.default == "on"
            return f"--[no-]{flag.removeprefix('--')}" if is_on else flag, known.description
        is_short = len(known.default or "") <= _LONGEST_DEFAULT
        return flag, _help(known) if is_short else known.description


class BusCommand(click.Command):
    """A command whose help ends with the buses."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the options in narrow columns."""
        options = (known for known in self.get_params(ctx) if isinstance(known, click.Option))
        records = (known.get_help_record(ctx) for known in options)
        with formatter.section("Options"):
            formatter.write_dl([record for record in records if record], col_max=_FLAG_WIDTH)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete also the options that plain help has no room for, once they are begun."""
        found = super().shell_complete(ctx, incomplete)
        if not incomplete.startswith("--"):
            return found
        names = {item.value for item in found}
        more = (
            CompletionItem(flag, help=known.help)
            for known in self.get_params(ctx)
            if isinstance(known, DeclaredOption)
            for flag in (*known.opts, *known.secondary_opts)
            if flag.startswith(incomplete) and flag not in names
        )
        return [*found, *more]

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Name the buses and where their options are shown."""
        del ctx
        with formatter.section("Buses (each is on when one of its options is given)"):
            formatter.write_dl([(bus, EXAMPLES[bus]) for bus in EXAMPLES])
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(
                "Options are read from the file, over it from the environment (TM_KAFKA_TOPIC for "
                "--kafka-topic), over it from flags."
            )


def options_of(*models: type[OptionsModel]) -> Callable[[Decorated], Decorated]:
    """Give a command the options of these models, and `--config`."""

    def decorate(command: Decorated) -> Decorated:
        # click lists options in the order of decorators, which is from the last to the first.
        command = click.option(
            "--help-bus",
            type=click.Choice([model.section for model in models]),
            is_eager=True,
            expose_value=False,
            callback=_show_section,
            metavar="SECTION",
            help=f"All options of {', '.join(model.section for model in models)}.",
        )(command)
        for model in reversed(models):
            for known in reversed(model.options()):
                command = _click_option(known)(command)
        return config_option(command)

    return decorate


config_option = click.option(
    "--config",
    type=click.Path(path_type=Path),
    envvar="TM_CONFIG",
    metavar="FILE",
    help="Options from a TOML file.",
)


def settings_of(context: click.Context, *others: type[OptionsModel]) -> Settings:
    """Return the settings that flags, environment and configuration file give together.

    They are those of the command's own sections, and of `others`, for which it has no flags.
    """
    flags: dict[str, dict[str, object]] = {}
    own = [model for model in SECTIONS if _parameter_name(model.options()[0]) in context.params]
    for model in own:
        for known in model.options():
            parameter = _parameter_name(known)
            if context.get_parameter_source(parameter) is ParameterSource.COMMANDLINE:
                value = context.params[parameter]
                joined = ",".join(value) if known.form.repeats else value
                flags.setdefault(model.section, {})[known.key] = joined
    return load_settings(flags, os.environ, context.params["config"], [*own, *others])


def _parameter_name(known: Option) -> str:
    return f"{known.section}__{known.key}"


def _click_option(known: Option) -> Callable[[Decorated], Decorated]:
    facts: dict[str, Any] = {
        "default": None,
        "hidden": not known.in_help,
    }
    if not known.form.is_switch:
        # Values stay texts: one reader checks them, wherever they come from.
        facts |= {"type": str, "metavar": known.form.metavar, "multiple": known.form.repeats}
    return click.option(
        *_declarations(known),
        _parameter_name(known),
        cls=DeclaredOption,
        known=known,
        help=_help(known),
        **facts,
    )


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
