"""Arguments and options that several commands share."""

from collections.abc import Callable, Mapping
from inspect import cleandoc
from textwrap import indent
from typing import Any, TypeVar

import click

from calibrant.cli._errors import RefusedError
from calibrant.cli._target import InputPath, OutputPath, check_apart

Command = TypeVar("Command", bound=Callable[..., Any])
FORMATS = ("csv", "parquet", "json", "ipc")
PLAN_INTERVALS = ("clopper-pearson", "blaker", "kl", "hoeffding", "empirical-bernstein")
# the last three need the sizes of all bins, their edges, and weights
INTERVALS = (*PLAN_INTERVALS, "umd", "clopper-pearson-weighted", "betting")

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
    """A command whose docstring is its help. The section of examples comes last, printed as it is."""

    def __init__(self, name: str | None, **settings: Any) -> None:
        documented = cleandoc(settings.pop("help") or _NO_HELP)
        text, _, shown = documented.partition("\n\nExamples\n--------\n")
        super().__init__(
            name, help=text, epilog=f"\b\nExamples:\n{indent(shown, '  ')}", **settings
        )

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, unless it would write over what it reads."""
        check_apart(self.params, ctx.params)
        return super().invoke(ctx)


def command(short_help: str) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a command of a function."""
    return click.command(cls=Documented, short_help=short_help)


def number_or(
    *words: str, rule: str, fractions: bool = False
) -> Callable[[str], int | float | str]:
    """A whole number, perhaps a fraction, or one of these words."""

    def parse(text: str) -> int | float | str:
        try:
            if text in words:
                return text
            return float(text) if fractions and not text.strip().isdigit() else int(text)
        except ValueError:
            raise click.BadParameter(f"must be {rule}; got {text!r}") from None

    return parse


number_of_bins = number_or("auto", rule="a whole number, or auto")
number_of_rows = number_or("auto", "none", rule="a whole number, auto or none")
share = number_or(
    "auto", "none", rule="auto, none, a fraction such as 0.2, or a number of rows", fractions=True
)


def column(name: str, text: str) -> Callable[[Command], Command]:
    """An option that names a column of the data."""
    return click.option(f"--{name}", metavar="COLUMN", help=text)


def group_size(text: str) -> Callable[[Command], Command]:
    """The option --max-group-size, with what a command does without it."""
    said = f"Count a group as at most N rows{text}"
    return click.option("--max-group-size", type=click.IntRange(min=1), metavar="N", help=said)


data = click.argument(
    "data", nargs=-1, required=True, metavar="DATA...", type=InputPath(allow_dash=True)
)
model = click.argument("model", metavar="MODEL", type=InputPath(allow_dash=True))
score = column("score", "Column of scores. Default: the column score.")
label = column("label", "Column of outcomes. Default: the column label.")
segment = column(
    "segment", "Column of segments. Each is treated on its own, and all statements hold at once."
)
columns = together(score, label, segment)
weight = column("weight", "Column of importance weights.")
weights = together(
    weight,
    click.option("--weight-bound", type=float, metavar="BOUND", help="Upper bound of the weights."),
)
row_id = column("id", "Column of row ids, so that draws take the same rows in any order.")
group = column("group", "Column of groups, such as customers.")
max_group_size = group_size(" in a bin. Default: the most among groups set aside.")
group_target = click.option(
    "--group-target",
    type=click.Choice(("rows", "groups")),
    help="What counts the same: every row (the default) or every group.",
)
group_options = together(group, max_group_size, group_target)
attributes = together(
    click.option(
        "--attribute",
        multiple=True,
        metavar="COLUMN",
        help=(
            "Column of an attribute, such as sex or age: the "
            "subgroups that attributes make are audited too. Give it once for each."
        ),
    ),
    click.option(
        "--order",
        type=click.IntRange(1, 3),
        default=2,
        show_default=True,
        metavar="N",
        help="With --attribute: subgroups of up to N attributes.",
    ),
    click.option(
        "--min-share",
        type=float,
        default=0.05,
        show_default=True,
        metavar="SHARE",
        help="With --attribute: subgroups with at least this share of the rows.",
    ),
    click.option(
        "--target",
        type=click.Choice(("rows", "population")),
        default="rows",
        show_default=True,
        help="With --attribute: errors of subgroups among the rows at hand, or in the population.",
    ),
)
model_score = column("score", "Column of scores. Default: as in fit.")
model_segment = column("segment", "Column of segments. Default: as in fit.")
coverage = click.option(
    "--coverage", type=float, default=0.95, show_default=True, help="Coverage of the sets."
)
seed = click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of random draws."
)
most_rows = click.option(
    "--most-rows",
    type=click.IntRange(min=100),
    default=1_000_000,
    show_default=True,
    metavar="N",
    help="Take a random sample where there are more rows.",
)
pilot = click.option(
    "--pilot",
    type=share,
    metavar="SHARE",
    help=(
        "Fraction or number of rows that only cut bins; "
        "none: every row cuts and counts. Default: auto, by a look for tied scores."
    ),
)
min_rows = click.option(
    "--min-rows",
    type=number_of_rows,
    metavar="N",
    help=(
        "With --segment: segments with fewer rows "
        'share the bins of one, "other"; none: every segment has its own. Default: auto, about '
        "300 or more; with --group every segment has its own."
    ),
)
allow_out_of_range = click.option(
    "--allow-out-of-range",
    is_flag=True,
    help="Accept scores far outside the range that the model was fitted on.",
)
keep_segment = click.option(
    "--keep-segment",
    multiple=True,
    metavar="NAME",
    help=(
        "With --segment: a segment with bins "
        "of its own, in place of --min-rows; give it once for each. Others share those of "
        '"other".'
    ),
)
scale = click.option(
    "--scale",
    type=click.Choice(("linear", "logit")),
    default="linear",
    show_default=True,
    help="Axes of the report's reliability diagrams; logit is for rare events.",
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
        "--classes", metavar="A,B", help="Both classes, where the data may hold only one."
    ),
)
holdout = together(
    click.option(
        "--holdout", type=click.Choice(("last",)), help="Calibrate on the most recent rows only."
    ),
    column("time", "With --holdout: column of times. Default: the rows are in order of time."),
    click.option(
        "--calibration-size",
        type=number_or(rule="a fraction such as 0.2, or a number of rows", fractions=True),
        metavar="SHARE",
        help=(
            "With --holdout: fraction or number of the rows to calibrate "
            "on, or of the groups. Default: 0.25."
        ),
    ),
)
skip_missing = click.option(
    "--skip-missing",
    is_flag=True,
    help=(
        "Skip rows whose label is missing, such as outcomes "
        "that are still pending, and say how many."
    ),
)
reading = together(
    click.option(
        "--format",
        "file_format",
        type=click.Choice(FORMATS),
        help="File format, if the file names do not show it.",
    ),
    click.option(
        "--threads",
        type=click.IntRange(min=1),
        metavar="N",
        help="Reader threads; results are the same.",
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
    """Refuse a bound without the column that it is about."""
    for name, column in (("max_group_size", "group"), ("weight_bound", "weight")):
        if options[name] is not None and options[column] is None:
            raise RefusedError(
                f"--{name.replace('_', '-')}", f"go with --{column}, the column of {column}s"
            )


def output(text: str, metavar: str = "FILE", **settings: Any) -> Callable[[Command], Command]:
    """Where to write."""
    return click.option(
        "-o", "--output", metavar=metavar, type=OutputPath(allow_dash=True), help=text, **settings
    )


def confidence(default: float) -> Callable[[Command], Command]:
    """The confidence level."""
    text = "Confidence that all statements hold at once."
    return click.option(
        "--confidence", type=float, default=default, show_default=True, metavar="LEVEL", help=text
    )


def bins(text: str) -> Callable[[Command], Command]:
    """How many bins."""
    return click.option(
        "--bins",
        type=number_of_bins,
        default="auto",
        show_default=True,
        metavar="N|auto",
        help=text,
    )
