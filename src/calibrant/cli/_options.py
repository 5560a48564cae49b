"""Arguments and options shared by several commands."""

from collections.abc import Callable, Mapping
from inspect import cleandoc
from textwrap import indent
from typing import Any, TypeVar

import click

from calibrant.cli._errors import RefusedError
from calibrant.cli._signature import Declared, number_or, words_of
from calibrant.cli._target import InputPath, OutputPath, check_apart

Command = TypeVar("Command", bound=Callable[..., Any])
SCALES = words_of("draw.style", "SCALES")
FORMATS = words_of("sample.sources.file_kind", "FORMATS")

_NO_HELP = """Run without PYTHONOPTIMIZE=2 to read what this command does: that setting removes such texts from Python.

Examples
--------
PYTHONOPTIMIZE=0 calibrant --help
"""  # noqa: E501


def together(*decorators: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """Combine decorators, in the order in which --help lists them."""

    def decorate(function: Any) -> Any:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


class Documented(click.Command):
    """A command whose docstring is its help. The Examples section comes last and is printed
    verbatim.
    """

    def __init__(self, name: str | None, **settings: Any) -> None:
        documented = cleandoc(settings.pop("help") or _NO_HELP)
        text, _, shown = documented.partition("\n\nExamples\n--------\n")
        super().__init__(
            name, help=text, epilog=f"\b\nExamples:\n{indent(shown, '  ')}", **settings
        )

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, unless it would overwrite its input."""
        check_apart(self.params, ctx.params)
        return super().invoke(ctx)


def command(short_help: str) -> Callable[[Callable[..., Any]], click.Command]:
    """Turn a function into a command."""
    return click.command(cls=Documented, short_help=short_help)


def column(name: str, text: str) -> Callable[[Command], Command]:
    """An option that names a column of the data."""
    return click.option(f"--{name}", metavar="COLUMN", help=text)


def group_size(declared: Declared, text: str) -> Callable[[Command], Command]:
    """The option --max-group-size, with a text on what a command does without it."""
    said = f"Count a group as at most N rows{text}"
    return declared.option("max_group_size", said, metavar="N")


data = click.argument(
    "data", nargs=-1, required=True, metavar="DATA...", type=InputPath(allow_dash=True)
)
model = click.argument("model", metavar="MODEL", type=InputPath(allow_dash=True))
score = column("score", "Column of scores. Default: the column score.")
label = column("label", "Column of outcomes. Default: the column label.")
segment = column(
    "segment",
    "Column of segments. Each is treated separately, and all statements hold simultaneously.",
)
columns = together(score, label, segment)
weight = column("weight", "Column of importance weights.")


def weights(declared: Declared) -> Callable[[Command], Command]:
    """The column of weights, and a bound on them."""
    text = "Upper bound on the weights."
    return together(weight, declared.option("weight_bound", text, metavar="BOUND"))


row_id = column("id", "Column of row ids, so that random draws pick the same rows in any order.")
group = column("group", "Column of groups, such as customers.")
IN_A_BIN = " in a bin. Default: the most in any pilot group."
model_score = column("score", "Column of scores. Default: as in fit.")
model_segment = column("segment", "Column of segments. Default: as in fit.")
most_rows = click.option(
    "--most-rows",
    type=click.IntRange(min=100),
    default=1_000_000,
    show_default=True,
    metavar="N",
    help="Take a random sample if there are more rows.",
)
number_of_rows = number_or("auto", "none", rule="a whole number, auto or none")
min_rows = click.option(
    "--min-rows",
    type=number_of_rows,
    metavar="N",
    help=(
        'With --segment: segments with fewer rows are pooled as "other"; none: every '
        "segment gets its own bins. Default: auto, about 300 or more; with --group "
        "nothing is pooled."
    ),
)
allow_out_of_range = click.option(
    "--allow-out-of-range",
    is_flag=True,
    help="Accept scores far outside the range the model was fitted on.",
)
keep_segment = click.option(
    "--keep-segment",
    multiple=True,
    metavar="NAME",
    help=(
        "With --segment, instead of --min-rows: a segment that gets its own bins; repeat "
        'for each. The rest are pooled as "other".'
    ),
)
scale = click.option(
    "--scale",
    type=click.Choice(SCALES),
    default=SCALES[0],
    show_default=True,
    help="Axes of the report's reliability diagrams; use logit for rare events.",
)
escape_formulas = click.option(
    "--escape-formulas",
    is_flag=True,
    help="Put ' before text that a spreadsheet would run as a formula.",
)
overwrite = click.option("--overwrite", is_flag=True, help="Replace the output file if it exists.")
classes = together(
    click.option("--pos-label", metavar="LABEL", help="Positive class."),
    click.option(
        "--classes", metavar="A,B", help="Both classes, if the data may contain only one."
    ),
)
holdout = together(
    click.option(
        "--holdout", type=click.Choice(("last",)), help="Calibrate on the most recent rows only."
    ),
    column("time", "With --holdout: column of times. Default: the rows are in time order."),
    click.option(
        "--calibration-size",
        type=number_or(rule="a fraction such as 0.2, or a number of rows", fractions=True),
        metavar="SHARE",
        help=(
            "With --holdout: fraction or number of rows (or groups) to calibrate on. Default: 0.25."
        ),
    ),
)
skip_missing = click.option(
    "--skip-missing",
    is_flag=True,
    help=("Skip rows whose label is missing, such as pending outcomes, and say how many."),
)
reading = together(
    click.option(
        "--format",
        "file_format",
        type=click.Choice(FORMATS),
        help="File format, if the file name does not show it.",
    ),
    click.option(
        "--decimal",
        type=click.Choice(words_of("sample.scored", "DECIMALS")),
        default=".",
        show_default=True,
        help="Decimal mark of numbers in CSV files.",
    ),
    click.option(
        "--threads",
        type=click.IntRange(min=1),
        metavar="N",
        help="Number of reader threads; the results are the same.",
    ),
)
as_json = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object and nothing else."
)
common = together(
    as_json,
    click.option(
        "-q", "--quiet", is_flag=True, help="Print only the answer: no progress, hints or warnings."
    ),
    click.option(
        "--debug", is_flag=True, expose_value=False, help="Show the traceback of an error."
    ),
)


def check_bounds(options: Mapping[str, Any]) -> None:
    """Reject a bound without the column it applies to."""
    for name, column in (("max_group_size", "group"), ("weight_bound", "weight")):
        if options[name] is not None and options[column] is None:
            raise RefusedError(
                f"--{name.replace('_', '-')}", f"be used with --{column}, the column of {column}s"
            )


def output(text: str, metavar: str = "FILE", **settings: Any) -> Callable[[Command], Command]:
    """The option for the output file."""
    return click.option(
        "-o", "--output", metavar=metavar, type=OutputPath(allow_dash=True), help=text, **settings
    )


def confidence(declared: Declared) -> Callable[[Command], Command]:
    """The confidence level."""
    text = "Confidence that all statements hold simultaneously."
    return declared.option("confidence_level", text, metavar="LEVEL")


def bins(declared: Declared, text: str) -> Callable[[Command], Command]:
    """The number of bins."""
    return declared.option("n_bins", text, metavar="N|auto")


def seed(declared: Declared) -> Callable[[Command], Command]:
    """The seed of random draws."""
    return declared.option("random_state", "Seed of random draws.")


def coverage(declared: Declared) -> Callable[[Command], Command]:
    """The coverage of prediction sets."""
    return declared.option("coverage", "Coverage of the sets.")


def pilot(declared: Declared) -> Callable[[Command], Command]:
    """The pilot rows, which only cut bins."""
    text = (
        "Fraction or number of pilot rows, used only to choose bins. none: all rows are used to"
        " choose bins and are counted."
        f" Default: {declared.default('pilot')}, depending on ties."
    )
    return declared.option("pilot", text, metavar="SHARE", default=None, show_default=False)
