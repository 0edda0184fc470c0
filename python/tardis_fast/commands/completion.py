"""`tardis-fast completion`: what a shell needs to complete commands and options."""

import click
from click.shell_completion import get_completion_class

PROGRAM = "tardis-fast"
_VARIABLE = "_TARDIS_FAST_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    r"""Print the completion script of a shell.

    \b
    bash:  tardis-fast completion bash >> ~/.bashrc
    zsh:   tardis-fast completion zsh >> ~/.zshrc
    fish:  tardis-fast completion fish > ~/.config/fish/completions/tardis-fast.fish
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"{shell}: its completion is not known to this version of click")
    click.echo(kind(context.find_root().command, {}, PROGRAM, _VARIABLE).source())
