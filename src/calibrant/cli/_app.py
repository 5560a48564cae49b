"""The group of all commands. Each is imported only when needed."""

import os
import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any

import click

from calibrant._version import __version__
from calibrant.cli._errors import ReaderGone, RefusedError, message_and_code
from calibrant.cli._output import say, warn
from calibrant.cli._signals import forget_signals, stop
from calibrant.cli._words import in_options
from calibrant.errors import CalibrantWarning
from calibrant.text.sentences import did_you_mean, render

_COMMANDS = (
    "demo",
    "check",
    "audit",
    "fit",
    "apply",
    "verify",
    "export",
    "compare",
    "compare-models",
    "threshold",
    "rate",
    "decide",
    "plan",
    "plan-rate",
    "watch",
    "serve",
    "completion",
)

_OVERVIEW = """\
calibrant turns any binary classifier's scores into probabilities with a guarantee.

  calibrant demo                                                  see it work on 30,000 credit-card clients
  calibrant audit scores.csv --score p --label y -o audit.html    is the model calibrated?
  calibrant fit scores.csv --score p --label y -o model.json      calibrate, with a guarantee

Then: apply the model to new rows, export it as SQL, verify it against the data.
More: calibrant --help, calibrant fit --help."""  # noqa: E501


class LazyGroup(click.Group):
    """Imports a command when needed, and prints each error on one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All commands, in the order of first use."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of the command."""
        if cmd_name not in _COMMANDS:
            return None
        return import_module(f"calibrant.cli.{cmd_name.replace('-', '_')}").command  # type: ignore[no-any-return]

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Find the command, or suggest the nearest one."""
        name = args[0]
        if name not in _COMMANDS:
            near = did_you_mean(name, _COMMANDS)
            hint = f": {near}" if near else f"; there are {', '.join(_COMMANDS)}"
            raise click.UsageError(f"there is no command {name!r}{hint}", ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. Unlike in click, a closed pipe is not a failure."""
        try:
            with _own_warnings():
                return super().invoke(ctx)
        except BrokenPipeError:
            raise ReaderGone from None

    def main(  # type: ignore[override]
        self, args: Sequence[str] | None = None, prog_name: str | None = "calibrant", **extra: Any
    ) -> Any:
        """Run, report an error on one line, and exit with an exit code."""
        given = list(sys.argv[1:] if args is None else args)
        debug = "--debug" in given or os.environ.get("CALIBRANT_DEBUG", "") not in ("", "0")
        before = None
        forget_signals()
        with suppress(ValueError):  # signals cannot be handled outside the main thread
            before = signal.signal(signal.SIGTERM, stop)
        try:
            if sys.stdout is None:
                advice = "send it to /dev/null if you do not want it"
                raise RefusedError("standard output", "be open", got="a closed one", advice=advice)
            how = {**extra, "obj": tuple(given), "standalone_mode": False}
            result = super().main(given, prog_name, **how)
            sys.stdout.flush()
            code = result if isinstance(result, int) else 0
        except (BrokenPipeError, ReaderGone):
            code = 0
        except BaseException as error:
            if (
                debug
                and isinstance(error, Exception)
                and not isinstance(error, click.ClickException | click.Abort)
            ):
                raise
            message, code = message_and_code(error)
            if message:
                say(message, err=True)
        finally:
            if before is not None:
                signal.signal(signal.SIGTERM, before)
        try:
            if sys.stdout is not None:
                sys.stdout.flush()
        except OSError:  # the reader is gone, or the disk full: keep Python from complaining about it again at exit  # noqa: E501
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(code)


@contextmanager
def _own_warnings() -> Iterator[None]:
    """Print calibrant's own warnings in the terms of the command line, each of them once.

    Other warnings are shown as Python shows them.
    """
    with warnings.catch_warnings():
        usual = warnings.showwarning
        printed: set[str] = set()

        def show(message: Any, category: type[Warning], *place: Any) -> None:
            if issubclass(category, CalibrantWarning):
                text = render(message.args[0], in_options)
                if text not in printed:
                    printed.add(text)
                    warn(text)
            else:
                usual(message, category, *place)

        warnings.simplefilter("always", CalibrantWarning)
        warnings.showwarning = show  # type: ignore[assignment]
        yield


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=(
        "Exit codes: 0 done; 1 a problem was found (--check, --require-epsilon, rate --at-least"
        " or --at-most, verify, watch --once); 2 wrong usage or bad input; 3 the answer is unclear"
        " (the same commands); 130 interrupted. CALIBRANT_DEBUG=1, or --debug, shows the"
        " traceback of an error."
    ),
)
@click.version_option(__version__, prog_name="calibrant")
@click.pass_context
def app(ctx: click.Context) -> None:
    """Turn the scores of any binary classifier into probabilities with a guarantee.

    Reads CSV, Parquet, JSON lines and Arrow files, compressed or not, and folders or globs of them.
    Write - to read standard input. Every command has --json for scripts.
    """
    if ctx.invoked_subcommand is None:
        say(_OVERVIEW)
