"""The reference page of all options, made from their declarations.

`python -m tardis_fast.options.reference > docs/configuration.md` writes it.
"""

import sys

from tardis_fast.options.base import Option, OptionsModel
from tardis_fast.options.settings import BUSES, SECTIONS

_HEAD = """\
# Configuration

<!-- Made from the declarations in python/tardis_fast/options by scripts/generate. -->

Each option can be given in three ways; the stronger beats the weaker:

1. as a **flag**: `--kafka-topic bronze`;
2. in the **environment**: `TM_` and the flag in upper snake case, `TM_KAFKA_TOPIC=bronze`; an empty
   variable counts as not set;
3. in a **file**, TOML, named by `--config` or `TM_CONFIG`: a table for each section below.

```toml
[server]
port = 8000
host = "0.0.0.0"

[archive]
cache_dir = "/var/cache/tardis-fast"

[kafka]
brokers = ["broker-1:9092", "broker-2:9092"]
topic = "bronze"
topic_routing = { trade = "trades", bookChange = "books" }

[delivery]
state_dir = "/var/lib/tardis-fast"

[log]
format = "json"
```

One file does for all commands: each reads the sections that concern it and passes over the others.
A name that is not known is refused, with the one that may be meant. A bus is on as soon as one of
its options is given, and any number of buses can be on.

Secrets never appear in the log, in error texts or in what the server tells about itself. Flags can
be read by every user of a machine while the program runs, so give secrets in the environment or
the file.

Forms of values: `A,B` is a list and `A:B,C:D` a list of pairs; the file also takes arrays and
tables, and such flags may be repeated. A switch is turned on with `--flag` and off with
`--no-flag`; in the environment and the file it is `true` or `false`. In Python the same names are
arguments: `KafkaOptions(topic="bronze")`.

`tardis-fast COMMAND --help-bus SECTION` shows a section in the terminal.
"""
_COMMANDS = {
    "server": ("serve",),
    "archive": ("serve", "publish"),
    "delivery": ("serve", "publish", "check"),
    "bronze": ("serve", "publish", "check"),
    "log": ("serve", "publish"),
}
_COMMANDS_OF_BUSES = ("serve", "publish", "check")
_TAIL = """\

## Exit codes

| code | what it means |
|---|---|
| 0 | all is well; for `serve`: it was told to stop, and nothing is lost |
| 1 | `publish`: not everything was acknowledged; `serve`: events were lost; `check`: a bus did \
not answer; others: the work failed |
| 2 | arguments or configuration cannot be used; nothing was done |
| 3 | `serve`: the port is taken or the address is none of this machine |
| 130, 143 | `publish`: SIGINT or SIGTERM ended it early, after draining |
| 141 | whoever read the output went away |
"""


def reference() -> str:
    """Return the page, in Markdown."""
    order = ("server", "archive", *(bus.section for bus in BUSES), "delivery", "bronze", "log")
    models = {model.section: model for model in SECTIONS}
    return _HEAD + "".join(_section(models[section]) for section in order) + _TAIL


def _section(model: type[OptionsModel]) -> str:
    title, _, what = (model.__doc__ or "").strip().partition(": ")
    commands = _COMMANDS.get(model.section, _COMMANDS_OF_BUSES)
    rows = "".join(_row(known) for known in model.options())
    return (
        f"\n## {title}: `[{model.section}]`\n\n"
        f"{what[:1].upper()}{what[1:]} Read by {_listed(commands)}.\n\n"
        "| flag | environment | key | value | default | |\n|---|---|---|---|---|---|\n"
        f"{rows}"
    )


def _listed(commands: tuple[str, ...]) -> str:
    *first, last = (f"`{command}`" for command in commands)
    return f"{', '.join(first)} and {last}" if first else last


def _row(known: Option) -> str:
    flags = [f"`{flag}`" for flag in known.flags]
    variables = [f"`{known.environment_name_of(key)}`" for key in known.keys]
    keys = [f"`{key}`" for key in known.keys]
    value = "switch" if known.form.is_switch else f"`{known.form.metavar}`"
    remark = " **Secret.**" if known.form.is_secret else ""
    cells = (
        "<br>".join(flags),
        "<br>".join(variables),
        "<br>".join(keys),
        value,
        known.default or "",
        known.description + remark,
    )
    # A bar would end the cell.
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


if __name__ == "__main__":
    sys.stdout.write(reference())
