"""The result of a test of exchangeability, as numbers and in words."""

from dataclasses import dataclass
from shlex import quote
from typing import Any, ClassVar

import numpy as np

from calibrant._typing import FloatArray, IntArray
from calibrant.sample.facts import RowFacts
from calibrant.text import numbers
from calibrant.text.picture import Drawn, Picture, ReferenceLine
from calibrant.text.quantity import NextStep, Quantity
from calibrant.text.result import Result, Verdict
from calibrant.text.result_table import ResultTable
from calibrant.text.sentences import Setting, Text, joined, words
from calibrant.text.sentences import sentence as as_sentence

_NULLS = {
    "scores": "the scores are exchangeable",
    "labels": "within each bin of the score, the rows are exchangeable",
    "scores by class": "within each class, the scores are exchangeable",
    "runs of scores": "the scores are exchangeable",
    "runs of labels": "within each bin of the score, the rows are exchangeable",
}
KINDS = tuple(_NULLS)
_COLUMNS = (
    "kind",
    "null",
    "alarm",
    "log_evidence",
    "p_value",
    "alarm_after",
    "alarm_time",
    "change_after",
    "change_time",
    "before",
    "after",
)
_MOVED = {
    "scores": "the scores have changed",
    "labels": "the rate at the same score has changed",
    "scores by class": "the scores within the classes have changed",
    "runs of scores": "neighbouring rows have similar scores",
    "runs of labels": "neighbouring rows have similar labels",
}
_FEW_ROWS = 20  # from here on, rows sorted by score raise an alarm
_PAIRS = (("scores", "runs of scores"), ("labels", "runs of labels"))
SORTED_FILE = "the file may be sorted by outcome; if so, its order tells you nothing"
_SORTED_SCORES = "the file seems to be sorted by score; if so, its order tells you nothing"
_TOGETHER = "rows from the same customer or day are not independent: pass the customer or day as "
_TOGETHER_IN_TIME = (
    "rows from the same customer are not independent: pass the customer, not the time, as "
)
_WITHOUT_GROUPS = (
    "Check without ",
    Setting("groups"),
    ", too: a test of one row from each group has little power",
)
_LABEL_SHIFT = (
    "there is no sign that scores changed within a class, so perhaps only the share of positives"
    " changed: LabelShiftCalibrator corrects for that"
)
_SCORE_SHIFT = (
    "there is no sign that the rate at a given score changed: use ShiftCalibrator to reweight these"
    " rows to match today's, or calibrate on recent rows"
)
_CLASS_SHIFT = "calibrate on recent rows, or watch the rate of each bin with DriftMonitor"
_GROUPS_TOGETHER = "neighbouring groups are alike, as if from one day or region: pass that as "


@dataclass(frozen=True, slots=True, eq=False)
class ExchangeabilityTest:
    """One of the tests, and its result.

    Attributes
    ----------
    kind : str
        "scores", "labels" (the rate at a given score), "scores by class", "runs of scores" or "runs
        of labels".
    null : str
        What an alarm speaks against.
    alarm : bool
        Whether the e-value ever reached the threshold, which is the number of tests divided by
        alpha.
    log_evidence : float
        Natural logarithm of the largest e-value so far.
    p_value : float
        An upper bound on the p-value of this test alone: 1 / largest e-value, at most 1.
    alarm_after : int or None
        The number of rows, in order, after which the alarm was raised.
    alarm_time : object
        The time of that row, if times were given.
    change_after : int or None
        The number of rows after which the largest change most likely happened: an estimate, without
        a guarantee. It can come after the alarm, if an earlier, smaller change raised the alarm.
        None for runs, and without an alarm.
    change_time : object
        The time of the first row after the change.
    before, after : float or None
        Mean score before and after the change. For labels: the rates at equal scores, that is, the
        overall rate plus the mean difference between the labels and the rate of their bin.
    path : float array of shape (n_looks,)
        Natural logarithm of the e-value at each look, for a plot.
    """

    kind: str
    alarm: bool
    log_evidence: float
    path: FloatArray
    alarm_after: int | None = None
    alarm_time: Any = None
    change_after: int | None = None
    change_time: Any = None
    before: float | None = None
    after: float | None = None

    @property
    def null(self) -> str:
        """What an alarm speaks against."""
        return _NULLS[self.kind]

    @property
    def p_value(self) -> float:
        """An upper bound on the p-value of this test alone."""
        return float(np.exp(-max(self.log_evidence, 0.0)))

    def __str__(self) -> str:
        if not self.alarm:
            return f"{self.kind}: no alarm"
        return f"{_MOVED[self.kind]}{self.change}"

    @property
    def change(self) -> str:
        """How much has changed, and since when; empty if that is not known."""
        if self.change_after is None or self.before is None or self.after is None:
            return ""
        before, after = (numbers.nearest(mean) for mean in (self.before, self.after))
        if self.kind == "labels":
            before = numbers.per_cent(before)
            after = numbers.per_cent(after)
        since = f"after {self.change_after:,} rows"
        if self.change_time is not None:
            since = f"around {self.change_time}"
        return f" from {before} to {after} {since}"


@dataclass(frozen=True, slots=True, repr=False)
class GroupSign(Result):
    """A pattern that independently drawn rows would not show.

    Attributes
    ----------
    kind : str
        "repeated id", "identical rows" or "runs of labels".
    column : str or None
        The column whose values rows seem to share.
    n_rows : int
        Rows inspected.
    text : Text
        The evidence, and what to do.
    """

    kind: str
    column: str | None
    n_rows: int
    text: Text

    @property
    def sentence(self) -> str:
        """The evidence, and what to do."""
        return as_sentence(words(self.text))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Exchangeability(Result):
    """Whether rows look exchangeable, like draws from one population; and if not, what has changed.

    Attributes
    ----------
    tests : tuple of ExchangeabilityTest
        The five tests.
    looks : int array of shape (n_looks,)
        The numbers of rows after which each path was checked.
    confidence_level : float
        If the rows are exchangeable, no test raises an alarm with at least this probability.
    n_rows : int
        Number of rows tested; with groups, one from each group.
    n_skipped : int
        Rows without a label, which were left out.
    grouped : bool
        Whether one row from each group was tested.
    n_left_out : int
        With groups, the number of rows that were not tested.
    long_run : int
        The length of a run of equal labels, in file order, that chance does not explain, as in a
        file sorted by label; 0 otherwise.
    sorted_by_score : bool
        Whether the scores, in file order, never decrease or never increase.
    signs : tuple of GroupSign
        Signs among the first rows that rows are grouped; they show nothing by themselves.
    n_in_data : int
        Number of rows of the data with a label; more than were tested if a sample was drawn.
    """

    _also: ClassVar[tuple[str, ...]] = ("alarm", "p_value", "causes")
    _tables_in_short: ClassVar[int] = 0

    tests: tuple[ExchangeabilityTest, ...]
    looks: IntArray
    confidence_level: float
    n_rows: int
    n_skipped: int = 0
    grouped: bool = False
    n_left_out: int = 0
    long_run: int = 0
    sorted_by_score: bool = False
    signs: tuple[GroupSign, ...] = ()
    n_in_data: int = 0

    def __getitem__(self, kind: str) -> ExchangeabilityTest:
        return self.tests[KINDS.index(kind)]

    @property
    def alarm(self) -> bool:
        """Whether some test raised an alarm."""
        return any(test.alarm for test in self.tests)

    @property
    def scale(self) -> str:
        """The e-value that raises an alarm, in words."""
        needed = len(self.tests) / (1.0 - self.confidence_level)
        return (
            f"an e-value of {needed:,.4g} raises an alarm: {len(self.tests)} tests share the error"
            " budget"
        )

    @property
    def p_value(self) -> float:
        """An upper bound on the p-value of all tests together: the smallest p-value times their
        number.
        """
        return min(1.0, len(self.tests) * min(test.p_value for test in self.tests))

    @property
    def causes(self) -> tuple[str, ...]:
        """The tests that explain the alarms best: of drift and runs of equal values, the one with
        more evidence.

        A drift makes neighbouring rows similar, and grouped rows go up and down as in a drift.
        """
        found = []
        for drift, runs in _PAIRS:
            stronger = max((self[drift], self[runs]), key=lambda test: test.log_evidence)
            if stronger.alarm:
                found.append(stronger.kind)
        return tuple(found) or (("scores by class",) if self["scores by class"].alarm else ())

    @property
    def verdict(self) -> Verdict:
        """Whether drift or dependence was detected."""
        return "problem" if self.alarm else "ok"

    @property
    def tested(self) -> str:
        """How many rows were tested, in words."""
        if self.grouped:
            n_groups = numbers.counted(self.n_rows, "group")
            return f"one randomly picked row from each of {n_groups}, in order"
        return numbers.rows(self.n_rows)

    @property
    def _columns(self) -> tuple[str, ...]:
        """The columns whose values rows seem to share: they explain why neighbours are similar."""
        return tuple(sign.column for sign in self.signs if sign.column is not None)

    @property
    def _order(self) -> str:
        """How the file seems to be sorted, which explains all else; empty if it does not."""
        if self.long_run:
            return f"{self.long_run:,} equal labels in a row: {SORTED_FILE}"
        moved = self["scores"].alarm or self["runs of scores"].alarm
        return _SORTED_SCORES if self.sorted_by_score and moved else ""

    def _on_drift(self) -> list[Text]:
        """What to do if rates or scores have changed."""
        if "labels" in self.causes:
            last = Setting("holdout", "last", python='CalibratedClassifier(..., holdout="last")')
            older = " does; the rates in older rows no longer apply"
            found: list[Text] = [("calibrate on recent rows, as ", last, older)]
            return found if self["scores by class"].alarm else [*found, _LABEL_SHIFT]
        advice: dict[str, Text] = {"scores": _SCORE_SHIFT, "scores by class": _CLASS_SHIFT}
        return [advice[kind] for kind in self.causes if kind in advice][:1]

    def _on_groups(self) -> list[Text]:
        """What to do if rows look grouped and no column says how.

        It comes after advice on drift, which also makes neighbouring rows similar: a drift alone
        gives runs less than half of its evidence.
        """
        if self._columns or not any(
            self[runs].alarm and 2.0 * self[runs].log_evidence >= self[drift].log_evidence
            for drift, runs in _PAIRS
        ):
            return []
        together = _TOGETHER
        if self.grouped:
            together = _GROUPS_TOGETHER
        elif any(test.alarm_time is not None for test in self.tests):
            together = _TOGETHER_IN_TIME
        return [(together, Setting("groups"), ", then check again")]

    @property
    def sentence(self) -> str:
        """What was found, and how sure that is."""
        level = numbers.percent(round(1.0 - self.confidence_level, 12))
        sure = f"false alarms: at most {level}; {self.tested}"
        if not self.alarm:
            if self.signs:
                return (
                    f"No test shows that these rows are not i.i.d. ({sure}), but there is a sign of"
                    " groups."
                )
            return f"No sign that these rows are not i.i.d. ({sure})."
        return (
            "These rows are not i.i.d.: guarantees that treat rows as independent do not apply"
            f" ({sure})."
        )

    @property
    def remarks(self) -> tuple[str, ...]:
        """What was found, signs of groups first; without an alarm, why little was tested."""
        # a column of groups explains runs, unless the file is sorted
        explained = () if self._order or not self._columns else ("runs of labels",)
        signs = [sign for sign in self.signs if sign.kind not in explained]
        texts = [joined("a sign of groups: ", sign.text) for sign in signs]
        return tuple(as_sentence(words(text)) for text in (*texts, *self._findings()))

    def _findings(self) -> list[Text]:
        """What the tests found, if the signs and the order of the file do not say so already."""
        if not self.alarm and self.n_left_out:
            of = numbers.rows(self.n_rows + self.n_left_out)
            return [
                f"only {self.n_rows:,} of {of} were tested, one from each group: a small change may"
                " go unnoticed"
            ]
        if self._order:
            return []
        kinds = [kind for kind in self.causes if not (self._columns and kind.startswith("runs"))]
        found: list[Text] = [str(self[kind]) for kind in kinds]
        remedies = self._on_drift() if self._columns else []  # else it is the next step
        return [*found[:-1], joined(found[-1], ": ", remedies[0])] if found and remedies else found

    @property
    def numbers(self) -> tuple[Quantity, ...]:
        """How many rows were tested, and the p-value of all tests."""
        return (
            Quantity("Tested", self.n_rows, unit="group" if self.grouped else "row"),
            Quantity("False alarms, at most", round(1.0 - self.confidence_level, 12), unit="share"),
            Quantity("p-value", self.p_value, high=self.p_value),
        )

    @property
    def next_steps(self) -> tuple[NextStep, ...]:
        """What to do about it; without an alarm, audit the scores."""
        if self._order:
            shuffle = ". Shuffle it, or give ", Setting("time"), ", then check again"
            return (NextStep(words((self._order, *shuffle))),)
        steps = []
        for name in self._columns:
            column = quote(name).replace("{", "{{").replace("}", "}}")
            again = words(("Check again with ", Setting("group", name)))
            steps.append(NextStep(again, command=f"check {{rows}} --group {column}{{time}}"))
        if not self.alarm:
            audit = NextStep("Audit the scores", "audit(y, scores)", "audit {rows} -o audit.html")
            alone = [NextStep(words(_WITHOUT_GROUPS))] if self.n_left_out else []
            return (*steps, audit, *alone)
        recent = "fit {rows} --holdout last{time} -o model.json" if "labels" in self.causes else ""
        for text in (*self._on_drift(), *self._on_groups()):
            steps.append(NextStep(words(text), command=recent))
            recent = ""
        return tuple(steps) or (NextStep("Watch the rate of each bin with DriftMonitor"),)

    def pictures(self) -> tuple[Picture, ...]:
        """The evidence of each test, and the evidence that raises an alarm."""
        looks = self.looks.tolist()
        drawn = tuple(
            Drawn(test.kind, looks, test.path.tolist(), kind="line") for test in self.tests
        )
        needed = float(np.log(len(self.tests) / (1.0 - self.confidence_level)))
        text = "The evidence of each test that the rows are not i.i.d., after so many rows."
        labels = "rows", "evidence (log of the e-value)"
        return (Picture("Evidence", text, *labels, drawn, (ReferenceLine("alarm", needed),)),)

    @property
    def notes(self) -> tuple[str, ...]:
        """The e-value that raises an alarm, and which rows were tested."""
        found = [self.scale]
        if self.n_rows < _FEW_ROWS and not self.alarm:
            found.append("with so few rows, even clear drift may raise no alarm")
        drawn = self.n_rows + self.n_left_out
        if drawn < self.n_in_data:
            found.append(
                f"{drawn:,} of {numbers.rows(self.n_in_data)}, drawn at random, were tested"
            )
        found.extend(RowFacts(skipped=self.n_skipped).notes)
        return tuple(found)

    def tables(self) -> tuple[ResultTable, ...]:
        """The tests, and the signs that rows are grouped."""
        columns = {name: [getattr(test, name) for test in self.tests] for name in _COLUMNS}
        columns["found"] = [str(test) if test.alarm else "" for test in self.tests]
        columns["p"] = [numbers.p_value(test.p_value) for test in self.tests]
        names = ("kind", "column", "n_rows", "sentence")
        signs = {name: [getattr(sign, name) for sign in self.signs] for name in names}
        heads = {"kind": "test", "p": "p-value"}
        return (
            ResultTable("tests", columns, ("kind", "alarm", "p", "found"), heads),
            ResultTable("signs", signs, shown=()),
        )
