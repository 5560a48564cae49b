"""`calibrant completion`: shell completion."""

import click

from calibrant.cli import _options as option
from calibrant.cli._output import print_json, print_verbatim

_SHELL = click.Argument(["shell"], type=click.Choice(("bash", "zsh", "fish")))


@option.command("completion", "Shell completion for bash, zsh and fish.", _SHELL)
def command(shell: str, as_json: bool, **_: bool) -> None:
    """Print a script that makes a shell complete commands and options.

    Examples
    --------
    eval "$(calibrant completion bash)"      # in ~/.bashrc
    eval "$(calibrant completion zsh)"       # in ~/.zshrc
    calibrant completion fish > ~/.config/fish/completions/calibrant.fish
    """
    from click.shell_completion import get_completion_class

    from calibrant.cli._app import app

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"there is no completion for {shell}")
    script = kind(app, {}, "calibrant", "_CALIBRANT_COMPLETE").source()
    if as_json:
        print_json({"command": "completion", "shell": shell, "script": script})
    else:
        print_verbatim(f"{script}\n")
