"""The `calibrant` command: audit, fit, apply, verify, export and more, on files of any size.

Each command is a module. It imports nothing heavy until it runs, so `--help` is fast.
"""

import sys

from calibrant._optional import install

__all__ = ["main"]


def main() -> None:
    """Run the command line and exit with its exit code.

    0: done. 1: a problem was found by a command that was asked for a verdict (--check,
    --require-epsilon, verify). 2: wrong usage or bad input. 3: its answer is unclear. 130: stopped
    by Ctrl-C.
    """
    try:
        import click  # noqa: F401 - to say how to install it, before anything else fails
    except ImportError:
        sys.stderr.write(
            f"error: the command line needs click, which is not installed: {install('cli')}\n"
        )
        sys.exit(2)
    from calibrant.cli._app import app

    app.main(prog_name="calibrant")
