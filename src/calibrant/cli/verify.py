"""`calibrant verify`: fit again from the rows, and say whether the guarantee stands."""

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from calibrant.cli import _options as option
from calibrant.cli._errors import message_of
from calibrant.cli._input import files
from calibrant.cli._model import DamagedError, read_model
from calibrant.cli._show import EXIT_CODES, show
from calibrant.cli._words import in_options
from calibrant.text.numbers import counted
from calibrant.text.result import Result, Verdict
from calibrant.text.result_table import ResultTable
from calibrant.text.sentences import render, shown

_ASSUMED = (
    "method, bins and seed were not chosen by looking at these labels, which no data can show"
)


@dataclass(frozen=True, slots=True, repr=False)
class Verification(Result):
    """Whether a guarantee stands: everything that its file says was found again in the rows."""

    _also: ClassVar[tuple[str, ...]] = ("stands", "differs", "guarantee")

    model: str | None = None
    """The fingerprint of the model file."""
    problem: str = ""
    """Why the guarantee does not stand, if the file itself shows it."""
    unclear: str = ""
    """Why it could not be recomputed, if so."""
    differences: tuple[Any, ...] = ()
    again: object = None
    """The new fit, if there is one."""
    on_rows: tuple[str, ...] = ()
    """Notes on the rows."""
    other_order: bool = False

    @property
    def verdict(self) -> Verdict:
        """Whether it stands, does not, or was not fully checked."""
        if self.problem or self.differences:
            return "problem"
        return "unclear" if self.unclear else "ok"

    @property
    def stands(self) -> bool | None:
        """Whether the guarantee stands; None if not all of it could be recomputed."""
        return {"ok": True, "problem": False, "unclear": None}[self.verdict]

    @property
    def _found(self) -> Any:
        """The guarantee of the new fit; a threshold states its own."""
        return getattr(self.again, "guarantee_", self.again)

    @property
    def guarantee(self) -> str | None:
        """What is guaranteed, in the words of the new fit, if it stands."""
        return render(self._found.sentence, in_options) if self.stands else None

    @property
    def notes(self) -> tuple[str, ...]:
        """Those of the new fit, and those on the rows."""
        return (*(() if self.again is None else self._found.notes), *self.on_rows)

    @property
    def differs(self) -> str | None:
        """What is known to differ: the "rows", or only their "order"."""
        if any(one.path in _OF_ROWS for one in self.differences):
            return "rows"
        return "order" if self.other_order else None

    @property
    def sentence(self) -> str:
        """The answer, with what is guaranteed if it stands."""
        if self.verdict == "ok":
            same = "refitting on these rows gives the same file"
            return f"The guarantee stands: {same}. {self.guarantee}"
        if self.verdict == "unclear":
            return f"The guarantee is not fully checked: {self.unclear}."
        if self.problem:
            return self.problem
        entries = counted(len(self.differences), "entry", "entries")
        if self.differs == "rows":
            return "The guarantee does not stand: these are not the rows that the file was made of."
        return f"The guarantee does not stand: refitting on these rows changes {entries}."

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What no data can show."""
        return (_ASSUMED,) if self.stands else ()

    def to_dict(self) -> dict[str, Any]:
        """The result as plain values; differences have both values in full."""
        return {**Result.to_dict(self), "differences": [asdict(one) for one in self.differences]}

    def tables(self) -> tuple[ResultTable, ...]:
        """The entries of the file that the new fit does not have."""
        columns = {
            "path": [one.path for one in self.differences],
            "file": [_cell(one.file) for one in self.differences],
            "rows": [_cell(one.rows) for one in self.differences],
        }
        heads = {"path": "entry", "file": "in the file", "rows": "from the rows"}
        return (ResultTable("differences", columns, heads=heads),)


_OF_ROWS = ("provenance.rows", "provenance.fingerprint")


@option.command("verify", "Does the guarantee hold up? Recompute it.", option.model, option.data)
def command(**options: Any) -> int:
    """Fit the model again from DATA, and say whether its guarantee stands.

    MODEL is a file from calibrant fit or calibrant threshold, or any file of save_model. DATA are
    the rows it was made from, in any format. Give them in the same order, unless it was made with
    --id or --group. Column names come from the model file, and the same rows are skipped as before.

    Exit code 0: everything was recomputed, and the guarantee stands; 1: it does not stand, or
    nothing is guaranteed; 3: a part could not be recomputed from these rows, such as bins that were
    given by hand, or rows in another order. The entries of the file that the rows do not give are
    listed.

    Examples
    --------
    calibrant verify model.json scores.csv
    calibrant verify threshold.json scores.csv
    calibrant verify model.json scores.parquet --json && echo stands
    """
    found = _verification(options)
    show(found, options)
    return EXIT_CODES[found.verdict]


def _verification(options: dict[str, Any]) -> Verification:
    from calibrant.cli._refit import refit

    try:
        model = read_model(options["model"], None)
    except DamagedError as error:
        begin = "The guarantee does not stand: the model file is not as it was written"
        return Verification(problem=f"{begin}: {message_of(error)}.")
    guarantee: Any = getattr(model.calibrator, "guarantee_", None)
    # bands and thresholds always say what is guaranteed
    if not getattr(guarantee, "is_proved", True):
        nothing = f"There is no guarantee to verify. {guarantee.sentence}"
        return Verification(model.fingerprint, nothing)
    with files(options) as source:
        return refit(model, source, options)


def _cell(value: Any) -> str:
    """A value in a table; a sentence that may be false is not repeated."""
    return "a text" if isinstance(value, str) and " " in value else shown(value)
