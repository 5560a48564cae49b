"""What is said when something goes wrong: one line, in the words of the command line, and an exit code."""

import re
from collections.abc import Callable

import click

from calibrant.cli._words import in_options
from calibrant.errors import CalibrantError

BAD_INPUT, STOPPED = 2, 130

_LABEL = re.compile(r"\b(?:thm|cor|eq|prop|lem|def|sec|asmp):\w")
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
    """The system asks us to end: files that are not whole are removed on the way out."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class ReaderGone(BaseException):
    """Whoever read our output has seen enough."""


class RefusedError(CalibrantError):
    """Something that only the command line refuses, such as a file that is there already."""


def told(error: BaseException) -> tuple[str, int]:
    """The line to print, and the exit code."""
    if isinstance(error, SystemExit):
        return "", error.code if isinstance(error.code, int) else BAD_INPUT
    if isinstance(error, click.exceptions.Exit):
        return "", error.exit_code
    if isinstance(error, click.Abort | KeyboardInterrupt):
        return "stopped; nothing was left half-written", STOPPED
    if isinstance(error, Stopped):
        return "stopped; nothing was left half-written", 128 + error.number
    if isinstance(error, click.UsageError):
        path = error.ctx.command_path if error.ctx is not None else "calibrant"
        return f"error: {_one_line(error.format_message())} (see {path} --help)", BAD_INPUT
    if isinstance(error, click.ClickException):
        return f"error: {_one_line(error.format_message())}", BAD_INPUT
    if isinstance(error, CalibrantError):
        return f"error: {message_of(error)}", BAD_INPUT
    if isinstance(error, OSError):
        return f"error: {_of_system(error)}", BAD_INPUT
    if isinstance(error, ImportError):
        return f"error: {_one_line(str(error))}", BAD_INPUT
    if isinstance(error, MemoryError):
        return "error: there is not enough memory for this", BAD_INPUT
    if type(error).__module__.partition(".")[0] == "pyarrow":
        return f"error: the data can not be read: {_one_line(str(error))[:300]}", BAD_INPUT
    return (
        f"error: something unforeseen happened ({type(error).__name__}: {_one_line(str(error))[:200]}); run it again "
        "with --debug and report what it shows",
        BAD_INPUT,
    )


def message_of(error: CalibrantError) -> str:
    """The error in one line, with options in place of parameters."""
    if error.parameter is None and not isinstance(error, RefusedError):
        return _one_line(in_words(str(error)))
    return _one_line(error.message(in_options))


def in_words(text: str) -> str:
    """A text of the library as it is said here: options for parameters, theorems by number."""
    for pattern, replacement in _WORDS:
        text = re.sub(pattern, replacement, text)
    if _LABEL.search(text):
        from calibrant.views.report.wording import readable

        text = readable(text)
    return text


def _of_system(error: OSError) -> str:
    name = error.filename if error.filename is not None else ""
    reason = error.strerror or str(error)
    if isinstance(error, FileNotFoundError):
        reason = "there is no such file or folder"
    elif isinstance(error, PermissionError):
        reason = "permission denied"
    elif isinstance(error, FileExistsError):
        reason = "the file is there already; --overwrite replaces it"
    return _one_line(f"{str(name)!r}: {reason}" if name else in_words(reason))


def _one_line(text: str) -> str:
    return " ".join(text.split())
