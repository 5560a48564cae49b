"""What is printed when something goes wrong: one line, with an exit code."""

import errno
import os

import click

from calibrant.cli._words import in_options
from calibrant.errors import CalibrantError
from calibrant.text.sentences import Setting, did_you_mean

BAD_INPUT = 2
INTERRUPTED = 130
_STOPPED = "stopped; no partial file was left behind"
_EXISTS = "the file already exists; use --overwrite to replace it"
_REASONS = {
    errno.ENOENT: "there is no such file or folder",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
}
"""Words for what the system says; our own errors have better ones."""
_MEANT = {
    "alpha": "--confidence, which is 1 - alpha",
    "html": "-o report.html",
    "report": "-o report.html",
    "positive": "--pos-label",
    "target": "--label",
}
"""Options that people try, and the options that do what they mean."""
_RATES = "for a rate, use calibrant rate, or calibrant plan-rate before there are labels"
_ELSEWHERE = {
    "attribute": (
        "attributes can be used with calibrant audit and, to calibrate subgroups, with"
        " SubgroupCalibrator in Python"
    ),
    "at-least": _RATES,
    "at-most": _RATES,
    "width": _RATES,
}
"""Options that people try, and where to find what they mean."""


class Stopped(BaseException):
    """The system asks the process to end. Incomplete files are removed on the way out."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class ReaderGone(BaseException):
    """The reader of our output closed the pipe."""


class RefusedError(CalibrantError):
    """Something that only the command line rejects, such as an existing output file."""


def message_and_code(error: BaseException) -> tuple[str, int]:
    """The line to print, and the exit code."""
    match error:
        case SystemExit():
            return "", error.code if isinstance(error.code, int) else BAD_INPUT
        case click.exceptions.Exit():
            return "", error.exit_code
        case click.Abort() | KeyboardInterrupt():
            return _STOPPED, INTERRUPTED
        case Stopped():
            return _STOPPED, 128 + error.number
    return f"error: {_one_line(_reason(error))}", BAD_INPUT


def message_of(error: CalibrantError) -> str:
    """The error in one line, with options in place of parameters."""
    return _one_line(error.message(in_options))


def _reason(error: BaseException) -> str:
    match error:
        case click.NoSuchOption():
            return f"{_no_such_option(error)} {_see(error)}"
        case click.UsageError():
            return f"{error.format_message()} {_see(error)}"
        case click.ClickException():
            return error.format_message()
        case CalibrantError():
            return message_of(error)
        case OSError():
            return _of_system(error)
        case ImportError():
            return str(error)
        case MemoryError():
            return "not enough memory for this"
    name = type(error).__name__
    text = str(error)
    if type(error).__module__.partition(".")[0] == "pyarrow":
        return "the data cannot be read, or not be written in this format; see --debug"
    return f"unexpected error ({name}: {text[:200]}); please report it with the output of --debug"


def _see(error: click.UsageError) -> str:
    return f"(see {'calibrant' if error.ctx is None else error.ctx.command_path} --help)"


def _no_such_option(error: click.NoSuchOption) -> str:
    """List all options that begin with the same word: the nearest may be the opposite of what was
    meant.
    """
    params = [] if error.ctx is None else error.ctx.command.params
    every = [name for param in params for name in param.opts]
    known = [name for name in every if name.startswith("--")]
    asked = error.option_name.lstrip("-")
    alike = [
        name for name in known if name.lstrip("-").partition("-")[0] == asked.partition("-")[0]
    ]
    near = did_you_mean(error.option_name, known)
    if alike:
        near = f"there {'is' if len(alike) == 1 else 'are'} {' and '.join(alike)}"
    meant = _MEANT.get(
        asked, in_options(Setting(asked.replace("-", "_")))
    )  # the parameter's name in Python
    if asked in every:
        near = f"give {asked.upper()} without an option"
    elif meant.split()[0].rstrip(",") in every:
        near = f"use {meant}"
    elif asked in _ELSEWHERE:
        near = _ELSEWHERE[asked]
    elif asked in _MEANT:
        near = ""
    return f"there is no option {error.option_name}" + (f"; {near}" if near else "")


def _of_system(error: OSError) -> str:
    reason = error.strerror or str(error)
    if isinstance(error, FileExistsError):
        reason = _EXISTS
    elif error.errno is not None and reason == os.strerror(error.errno):
        reason = _REASONS.get(error.errno, reason)
    return reason if error.filename is None else f"{str(error.filename)!r}: {reason}"


def _one_line(text: str) -> str:
    return " ".join(line.strip() for line in text.splitlines())
