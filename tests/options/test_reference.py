"""The reference page is made from the declarations."""

from pathlib import Path

import click
import pytest

from tardis_fast.commands.check import check
from tardis_fast.commands.publish import publish
from tardis_fast.commands.serve import serve
from tardis_fast.options.reference import reference
from tardis_fast.options.settings import SECTIONS

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"


def test_the_page_is_current() -> None:
    current = PAGE.read_text("utf-8") == reference()
    assert current, "docs/configuration.md is not what scripts/generate makes; run it and commit"


@pytest.mark.parametrize("command", [serve, publish, check], ids=lambda command: command.name)
def test_the_page_says_which_command_reads_a_section(command: click.Command) -> None:
    flags = {flag for parameter in command.params for flag in parameter.opts}
    sections = reference().split("\n## ")
    for model in SECTIONS:
        (text,) = (text for text in sections if f"`[{model.section}]`\n" in text)
        has_flags = model.options()[0].flag in flags
        # Its flags would say nothing to check, which looks at the values all the same.
        is_read = has_flags or (command is check and model.section == "bronze")
        assert (f"`{command.name}`" in text.partition("\n\n|")[0]) == is_read


def test_every_option_has_a_row() -> None:
    page = reference()
    for known in (known for model in SECTIONS for known in model.options()):
        row = next(line for line in page.splitlines() if line.startswith(f"| `{known.flag}`"))
        assert known.description in row
        assert ("**Secret.**" in row) == known.form.is_secret
        for key in known.keys:
            assert f"`{key}`" in row
            assert f"`{known.environment_name_of(key)}`" in row
