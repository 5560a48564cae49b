"""The result of a test of exchangeability, as numbers and in words."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibrant._typing import FloatArray, IntArray
from calibrant.sample.facts import RowFacts
from calibrant.text import numbers
from calibrant.text.result import Result
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
    "labels": "the rate at a given score has changed",
    "scores by class": "the scores within the classes have changed",
    "runs of scores": "scores depend on the scores of preceding rows",
    "runs of labels": "labels depend on the labels of preceding rows",
}
_FEW_ROWS = 20  # from here on, rows sorted by score raise an alarm
_PAIRS = (("scores", "runs of scores"), ("labels", "runs of labels"))
SORTED_FILE = "the file may be sorted by outcome; if so, its order tells you nothing"
_SORTED_SCORES = "the file seems to be sorted by score; if so, its order tells you nothing"
_TOGETHER = (
    "neighbouring rows are similar, as if they came from the same customer or day: pass that"
    " customer or day as "
)
_TOGETHER_IN_TIME = (
    "neighbouring rows are similar, as if they came from the same customer: pass the customer, not"
    " the time, as "
)
_GROUPS_TOGETHER = (
    "neighbouring groups are similar, as if they came from the same day or region: pass that as "
)


@dataclass(frozen=True, slots=True, eq=False)
class ExchangeabilityTest:
    """One of the tests, and its result.

    Attributes
    ----------
    kind : str
        "scores", "labels" (the rate at a given score), "scores by class", "runs of scores" or "runs
        of labels".
    null : str
        What an alarm disproves.
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
        """What an alarm disproves."""
        return _NULLS[self.kind]

    @property
    def p_value(self) -> float:
        """An upper bound on the p-value of this test alone."""
        return float(np.exp(-max(self.log_evidence, 0.0)))

    def __str__(self) -> str:
        strength = f"e-value {_e_value(self.log_evidence)}"
        if not self.alarm:
            return f"{self.kind}: no alarm ({strength})"
        when = "" if self.alarm_after is None else f", alarm after {numbers.rows(self.alarm_after)}"
        when += "" if self.alarm_time is None else f" ({self.alarm_time})"
        change = ""
        if self.change_after is not None and self.before is not None and self.after is not None:
            what = "the rate at the same scores" if self.kind == "labels" else "the mean score"
            since = "" if self.change_time is None else f" ({self.change_time})"
            change = (
                f"; the largest change: {what} is {numbers.nearest(self.before)} in the first "
                f"{self.change_after:,} rows and {numbers.nearest(self.after)} after that{since}"
            )
        return f"{self.kind}: {_MOVED[self.kind]} ({strength}{when}){change}"


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
        Signs among the first rows that rows are grouped; they prove nothing.
    n_in_data : int
        Number of rows of the data with a label; more than were tested if a sample was drawn.
    """

    _also: ClassVar[tuple[str, ...]] = ("verdict", "alarm", "p_value")

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
    def verdict(self) -> str:
        """The conclusion, in one clause."""
        return "; ".join(_MOVED[kind] for kind in self.causes) or "no sign of drift or dependence"

    @property
    def tested(self) -> str:
        """How many rows were tested, in words."""
        if self.grouped:
            n_groups = numbers.counted(self.n_rows, "group")
            return f"one randomly picked row from each of {n_groups}, in order"
        return numbers.rows(self.n_rows)

    @property
    def _is_sample(self) -> bool:
        """Whether a random sample of the rows was tested."""
        return self.n_rows + self.n_left_out < self.n_in_data

    @property
    def advice(self) -> tuple[Text, ...]:
        """What to do about it."""
        of_order = self._advice_on_order()
        if of_order is not None:  # in such a file the other findings say nothing about the rows
            return (of_order,)
        return (*self._advice_on_drift(), *self._advice_on_groups())

    def _advice_on_order(self) -> Text | None:
        """What to do about a file sorted by label or by score."""
        again = ". Shuffle it, or give ", Setting("time"), ", then check again"
        if self.long_run:
            return (
                f"{self.long_run:,} equal labels in a row: {SORTED_FILE}",
                *again,
            )
        if self.sorted_by_score and (self["scores"].alarm or self["runs of scores"].alarm):
            return (_SORTED_SCORES, *again)
        return None

    def _advice_on_drift(self) -> list[Text]:
        """What to do if rates or scores have changed."""
        found: list[Text] = []
        if "labels" in self.causes:
            since = self["labels"].change_time
            recent = (
                "the most recent rows"
                if since is None
                else f"recent rows, such as those from {since} on"
            )
            found.append(
                (
                    f"calibrate on {recent}; the rates in older rows no longer apply. ",
                    Setting(
                        "holdout",
                        "last",
                        python='CalibratedClassifier(..., holdout="last")',
                    ),
                    " does so",
                )
            )
            if not self["scores by class"].alarm:
                found.append(
                    "there is no sign that scores changed within a class, so perhaps only the share of"
                    " positives changed: LabelShiftCalibrator corrects for that"
                )
        elif "scores" in self.causes:
            found.append(
                "there is no sign that the rate at a given score changed: use ShiftCalibrator to"
                " reweight these rows to match today's, or calibrate on recent rows"
            )
        elif "scores by class" in self.causes:
            found.append(
                "calibrate on recent rows, or watch the rate of each bin with DriftMonitor"
            )
        return found

    def _advice_on_groups(self) -> list[Text]:
        """What to do if rows look grouped, or if groups leave few rows.

        It comes after advice on drift, which also makes neighbouring rows similar.
        """
        found: list[Text] = []
        if any(self._has_runs(*pair) for pair in _PAIRS):
            in_time = any(test.alarm_time is not None for test in self.tests)
            alone = _TOGETHER_IN_TIME if in_time else _TOGETHER
            together = _GROUPS_TOGETHER if self.grouped else alone
            found.append((together, Setting("groups"), ", then check again"))
        if self.n_left_out and not self.alarm:
            seen = (
                f"only {self.n_rows:,} of {numbers.rows(self.n_rows + self.n_left_out)} were tested"
            )
            found.append(
                (
                    "also check without ",
                    Setting("groups"),
                    f": {seen}, one from each group, and a test with few rows has little power."
                    " An alarm without ",
                    Setting("groups"),
                    " is valid as well, unless rows in a group share their labels or scores",
                )
            )
        return found

    def _has_runs(self, drift: str, runs: str) -> bool:
        """Whether runs have at least half the evidence of a drift; a drift alone gives them less."""
        return self[runs].alarm and 2.0 * self[runs].log_evidence >= self[drift].log_evidence

    @property
    def sentence(self) -> str:
        """What was found, with its confidence level and number of rows."""
        basis = f"with {numbers.percent(self.confidence_level)} confidence, from {self.tested}"
        if not self.causes:
            level = numbers.percent(round(1.0 - self.confidence_level, 12))
            basis = f"tested at the {level} level on {self.tested}"
        return as_sentence(f"{self.verdict}, {basis}")

    @property
    def notes(self) -> tuple[str, ...]:
        """What raised an alarm, the e-value that does so, what to do, and signs that rows are
        grouped.
        """
        found = [str(test) for test in self.tests if test.alarm]
        found.append(self.scale)
        if self.n_rows < _FEW_ROWS and not self.alarm:
            found.append("with so few rows, even clear drift may raise no alarm")
        found.extend(words(joined("what to do: ", text)) for text in self.advice)
        found.extend(
            words(joined("a sign that rows are grouped: ", sign.text)) for sign in self.signs
        )
        if self._is_sample:
            drawn = self.n_rows + self.n_left_out
            found.append(
                f"{drawn:,} of {numbers.rows(self.n_in_data)}, drawn at random, were tested"
            )
        found.extend(RowFacts(skipped=self.n_skipped).notes)
        return tuple(found)

    def tables(self) -> tuple[ResultTable, ...]:
        """The tests, and the signs that rows are grouped."""
        columns = {name: [getattr(test, name) for test in self.tests] for name in _COLUMNS}
        columns["e_value"] = [_e_value(test.log_evidence) for test in self.tests]
        names = ("kind", "column", "n_rows", "sentence")
        signs = {name: [getattr(sign, name) for sign in self.signs] for name in names}
        return (
            ResultTable(
                "tests",
                columns,
                ("kind", "alarm", "e_value", "p_value"),
                {"kind": "test"},
            ),
            ResultTable("signs", signs, shown=()),
        )

    def to_dict(self) -> dict[str, Any]:
        """The result as plain JSON values."""
        advice = [words(text) for text in self.advice]
        return {**Result.to_dict(self), "causes": list(self.causes), "advice": advice}


def _e_value(log: float) -> str:
    """An e-value in short form, rounded down.

    >>> _e_value(0.0), _e_value(7.3), _e_value(70.0)
    ('1', '1,480', '2e+30')
    """
    if log < np.log(1e6):
        value = float(np.exp(log))
        return (
            f"{np.floor(value * 10) / 10:g}" if value < 100 else f"{int(float(f'{value:.3g}')):,}"
        )
    power = int(np.floor(log / np.log(10.0)))
    return f"{int(np.floor(10 ** (log / np.log(10.0) - power)))}e+{power}"
