"""Options that several commands share."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
FORMATS = ("csv", "parquet", "json", "ipc")
INTERVALS = ("clopper-pearson", "blaker", "kl", "hoeffding", "empirical-bernstein", "umd", "betting")


def examples(*lines: str) -> str:
    """The examples at the end of a command's help, kept as they are."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def data_argument(function: Decorated) -> Decorated:
    """One or more files, folders or globs."""
    return click.argument("data", nargs=-1, required=True, metavar="DATA...", type=click.Path(allow_dash=True))(
        function
    )


def column_options(
    *, label: bool = True, weight: bool = False, row_id: bool = False
) -> Callable[[Decorated], Decorated]:
    """Which column is which."""

    def decorate(function: Decorated) -> Decorated:
        if row_id:
            function = click.option(
                "--id",
                "row_id",
                metavar="COLUMN",
                help="Column that names rows, so that a split draws the same ones in any order.",
            )(function)
        if weight:
            function = click.option("--weight", metavar="COLUMN", help="Column of importance weights.")(function)
        function = click.option("--segment", metavar="COLUMN", help="Column of groups, each judged on its own.")(
            function
        )
        if label:
            function = click.option("--label", metavar="COLUMN", help="Column of the outcomes.")(function)
        return click.option("--score", metavar="COLUMN", help="Column of the model's scores.")(function)

    return decorate


def class_options(function: Decorated) -> Decorated:
    """Which labels there are."""
    function = click.option("--classes", metavar="A,B", help="Both labels, where the data may hold only one.")(function)
    return click.option("--pos-label", metavar="LABEL", help="The label that a high score speaks for.")(function)


def reading_options(function: Decorated) -> Decorated:
    """How files are read."""
    function = click.option(
        "--threads", type=click.IntRange(min=1), metavar="N", help="Threads that read; results never depend on it."
    )(function)
    return click.option(
        "--format", "file_format", type=click.Choice(FORMATS), help="Format of files whose names do not tell it."
    )(function)


def common(function: Decorated) -> Decorated:
    """What every command has."""
    function = click.option("--debug", is_flag=True, expose_value=False, help="Show where an error came from.")(
        function
    )
    function = click.option("-q", "--quiet", is_flag=True, help="No progress, no remarks; errors are still told.")(
        function
    )
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")(function)


def confidence_option(default: float) -> Callable[[Decorated], Decorated]:
    """How sure to be."""
    return click.option(
        "--confidence",
        type=float,
        default=default,
        show_default=True,
        metavar="LEVEL",
        help="Confidence that everything stated holds at once.",
    )


def overwrite_option(function: Decorated) -> Decorated:
    """Whether a file that is there may be replaced."""
    return click.option("--overwrite", is_flag=True, help="Replace a file that is there already.")(function)


class Bins(click.ParamType):  # type: ignore[type-arg]
    """A number of bins, or "auto"."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        """Read it."""
        if value == "auto" or isinstance(value, int):
            return value  # type: ignore[no-any-return]
        try:
            return int(value)
        except ValueError:
            self.fail(f"must be a whole number, or auto; got {value!r}", param, ctx)


class Share(click.ParamType):  # type: ignore[type-arg]
    """A fraction such as 0.2, or a number of rows such as 500."""

    name = "share"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | float:
        """Read it."""
        if isinstance(value, int | float):
            return value
        try:
            return int(value) if value.strip().isdigit() else float(value)
        except ValueError:
            self.fail(f"must be a fraction such as 0.2, or a number of rows; got {value!r}", param, ctx)


def bins_option(text: str, default: str | int = "auto") -> Callable[[Decorated], Decorated]:
    """How many bins."""
    return click.option("--bins", type=Bins(), default=default, show_default=True, metavar="N|auto", help=text)
