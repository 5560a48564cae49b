"""What is printed when something goes wrong: one line, with an exit code."""

import re
from collections.abc import Callable

import click

from calibrant.cli._words import in_options
from calibrant.errors import CalibrantError

BAD_INPUT, INTERRUPTED = 2, 130
_STOPPED = "stopped; no partial file was left"

# The library speaks of its parameters and classes; here they are options and methods.
_WORDS: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (r"(?<!-)\bsplit=([\d.]+)", r"--split \1"),
    (r"(?<!-)\bsplit must be None for\b", "--split must be left out for"),
    (r"(?<!-)\bsplit must be None, a fraction\b", "--split must be a fraction"),
    (r"(?<!-)\bsplit must be an int >= 1, a fraction strictly between 0 and 1, or None",
     "--split must be a number of rows >= 1, or a fraction strictly between 0 and 1"),
    (r"(?<!-)\bsplit must\b", "--split must"),
    (r'(?<!-)\bn_bins="?(\w+)"?', r"--bins \1"),
    (r"(?<!-)\bn_bins\b", "--bins"),
    (r"\bas of BinningCalibrator,", "as calibrant fit makes it,"),
    (r"\bsay with BinningCalibrator\b", "say with calibrant fit and calibrant apply"),
    (r"\bexport a BinningCalibrator\b", "export a model of --method binning"),
    (r"\b(Platt|Temperature|Beta|Isotonic|Binning)Calibrator\b(?:\(\))?", lambda found: f"--method {found[1].lower()}"),
    (r"\bVennAbersCalibrator\b", "--method venn-abers"),
    (r"\bScalingBinningCalibrator\b(?:\(base=\.\.\.\))?", "--method scaling-binning"),
    (r"^n must\b", "--rows must"),
    (r"^calibrator must\b", "the model must"),
    (r"(?<!-)\bconfidence_level must\b", "--confidence must"),
    (r"(?<!-)\bweight_bound\b", "--weight-bound"),
    (r"(?<!-)\bscore_range must\b", "--range must"),
    (r"""(?<!-)\binterval=["']([\w-]+)["']""", r"--interval \1"),
    (r"(?<!-)\binterval must\b", "--interval must"),
    (r"(?<!-)\bbase_rate must\b", "--base-rate must"),
    (r"(?<!-)\bcoverage must\b", "--coverage must"),
    (r"(?<!-)\bdialect must\b", "--dialect must"),
    (r"(?<!-)\bsegment must name\b", "--segment must name"),
    (r"(?<!-)\bepsilon must\b", "--epsilon must"),
    (r"name an id column \(id=\.\.\.\)", "name an id column (--id)"),
    (r": scored\(\.\.\., (\w+)=\.\.\.\)", r": --\1"),
    (r"pass overwrite=True to replace it", "--overwrite replaces it"),
    (r"its format must be given as one of", "--format must be one of"),
    (r"give its format as (\w+)", r"give --format \1"),
    (r"(?<!-)\bcv must\b", "--folds must"),
    (r"give another prefix", "give another --prefix"),
)  # fmt: skip


class Stopped(BaseException):
    """The system asks the process to end. Files that are not complete are removed on the way out."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class ReaderGone(BaseException):
    """The reader of our output closed the pipe."""


class RefusedError(CalibrantError):
    """Something that only the command line refuses, such as an output file that exists."""


def told(error: BaseException) -> tuple[str, int]:
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
    if error.parameter is None and not isinstance(error, RefusedError):
        return _one_line(in_words(str(error)))
    return _one_line(error.message(in_options))


def _reason(error: BaseException) -> str:
    match error:
        case click.UsageError():
            command = "calibrant" if error.ctx is None else error.ctx.command_path
            return f"{error.format_message()} (see {command} --help)"
        case click.ClickException():
            return error.format_message()
        case CalibrantError():
            return message_of(error)
        case OSError():
            return _of_system(error)
        case ImportError():
            return str(error)
        case MemoryError():
            return "there is not enough memory for this"
    name, text = type(error).__name__, str(error)
    if type(error).__module__.partition(".")[0] == "pyarrow":
        return f"the data cannot be read: {text[:300]}"
    return f"unexpected error ({name}: {text[:200]}); please report it with the output of --debug"


def _of_system(error: OSError) -> str:
    reason = error.strerror or str(error)
    for kind, text in (
        (FileNotFoundError, "there is no such file or folder"),
        (PermissionError, "permission denied"),
        (FileExistsError, "the file exists already; --overwrite replaces it"),
    ):
        if isinstance(error, kind):
            reason = text
    return reason if error.filename is None else f"{str(error.filename)!r}: {reason}"


def _one_line(text: str) -> str:
    return " ".join(line.strip() for line in text.splitlines())


def in_words(text: str) -> str:
    """A text of the library as it is said here: options for parameters."""
    for pattern, replacement in _WORDS:
        text = re.sub(pattern, replacement, text)
    return text
