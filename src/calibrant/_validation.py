"""What validators of a model put into one table: slope, ratio, an exact test, the parts of the Brier score, grades."""

import math
from collections.abc import Hashable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, logit, ndtri
from sklearn.isotonic import isotonic_regression

from calibrant import _numbers
from calibrant._input import shown
from calibrant._optional import pandas
from calibrant._params import Integer, Only, error_budget, generator_of
from calibrant._typing import ArrayLike, CodeArray, FloatArray, IndexArray, IntArray, Seed
from calibrant.calibrators.logistic import fit_logistic
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.intervals import Interval
from calibrant.intervals._binomial import sidak_level
from calibrant.intervals.non_identical import non_identical
from calibrant.metrics import brier_score
from calibrant.metrics.auc import delong, normal_limits
from calibrant.metrics.bins import read_forecasts
from calibrant.metrics.units import Units, check_alone
from calibrant.rows import ScoredData
from calibrant.rows.memory import MemoryRows

PROVED, ASYMPTOTIC, MEASURED, EXACT_TEST = "proved", "asymptotic", "measured", "exact test"
TOO_LOW, TOO_HIGH, NOT_REFUTED = "assigned too low", "assigned too high", "not refuted"
_CLIP = 1e-6  # scores of 0 and 1 have no logit
_DRAWS, _FEWEST_DRAWS, _MOST_WORK = 999, 99, 1e8
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Measure:
    """One line of the table.

    Attributes
    ----------
    name : str
        What is measured.
    value : float
        Its value on these rows; NaN where there is none.
    lower, upper : float
        Limits; NaN where there are none.
    ideal : float
        The value of a calibrated score; NaN where there is none.
    basis : str
        "proved": the limits hold for every distribution and number of rows. "asymptotic": they are approximate.
        "measured": there are no limits. "exact test": the value is a p-value that is exact for every number of rows.
    """

    name: str
    value: float
    lower: float
    upper: float
    ideal: float
    basis: str

    @property
    def limits(self) -> str:
        """The limits as text."""
        if math.isnan(self.lower):
            return "none"
        return _numbers.limits(self.lower, self.upper).replace("to infinity", "or more")

    def __str__(self) -> str:
        value = "none" if math.isnan(self.value) else _numbers.nearest(self.value)
        return f"{self.name}: {value}" + ("" if math.isnan(self.lower) else f" ({self.basis}: {self.limits})")


@dataclass(frozen=True, slots=True, eq=False)
class GradeTable:
    """Rating grades: what was assigned, and what was observed. Every array has one entry per grade.

    Attributes
    ----------
    grade : object array
        Names, in the order of the assigned probabilities.
    counts, positives : int arrays
        Rows and positive rows.
    rate : float array
        Share of positive rows.
    assigned : float array
        Assigned probability: as given, or the mean score of the grade's rows.
    lower, upper : float arrays
        Limits of the grade's true rate; they hold for all grades at once.
    """

    grade: NDArray[np.object_]
    counts: IntArray
    positives: IntArray
    rate: FloatArray
    assigned: FloatArray
    lower: FloatArray
    upper: FloatArray

    @property
    def verdict(self) -> tuple[str, ...]:
        """For each grade "assigned too low", "assigned too high" or "not refuted"."""
        low, high = self.assigned < self.lower - _ROUNDING, self.assigned > self.upper + _ROUNDING
        return tuple(np.where(low, TOO_LOW, np.where(high, TOO_HIGH, NOT_REFUTED)).tolist())

    def to_frame(self) -> Any:
        """Return the grades as a pandas frame, one row per grade."""
        return pandas().DataFrame({**self._columns(), "verdict": self.verdict})

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return the grades as plain JSON values, one object per grade."""
        columns = {**{name: column.tolist() for name, column in self._columns().items()}, "verdict": self.verdict}
        return [dict(zip(columns, entries, strict=True)) for entries in zip(*columns.values(), strict=True)]

    def _columns(self) -> dict[str, NDArray[Any]]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Validation:
    """The validator's table.

    Attributes
    ----------
    measures : tuple of Measure
        The lines of the table. Each interval holds at `confidence_level` by itself.
    p_value : float
        Of the test of calibration: small values speak against a calibrated score.
    n_draws : int
        Draws of labels behind the p-value.
    grades : GradeTable or None
        The rating grades, where there are any.
    confidence_level : float
        Confidence in each interval, and in those of all grades at once.
    n_rows : int
        Rows.
    n_clipped : int
        Rows with a score so close to 0 or 1 that it was clipped for the slope and the intercepts.
    population : str
        Which population the limits are about, where it is not that of the rows.
    """

    measures: tuple[Measure, ...]
    p_value: float
    n_draws: int
    grades: GradeTable | None
    confidence_level: float
    n_rows: int
    n_clipped: int
    population: str = ""

    def __getitem__(self, name: str) -> Measure:
        for measure in self.measures:
            if measure.name == name:
                return measure
        raise KeyError(name)

    @property
    def is_rejected(self) -> bool:
        """Whether the test rejects calibration at the level 1 - confidence_level."""
        return self.p_value <= 1.0 - self.confidence_level + _ROUNDING

    def sentence(self) -> str:
        """The result of the test, and the two most read measures, in words."""
        verdict = "rejects" if self.is_rejected else "does not reject"
        p_value, rows = _numbers.nearest(self.p_value), _numbers.rows(self.n_rows)
        each = f"{self['expected / observed']}; {self['slope']}"
        test, about = "exact", ""
        if self.population:
            test, about = "asymptotic", f" What is said is{self.population}."
        return (
            f"The {test} test {verdict} calibration: p = {p_value}, from {rows}.{about} "
            f"With {_numbers.percent(self.confidence_level)} confidence each: {each}."
        )

    def to_frame(self) -> Any:
        """Return the table as a pandas frame, one row per measure."""
        return pandas().DataFrame([asdict(measure) for measure in self.measures])

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON values; a number that is not there is None."""
        return {
            "measures": [
                {name: _or_none(value) for name, value in asdict(measure).items()} for measure in self.measures
            ],
            "p_value": self.p_value,
            "draws": self.n_draws,
            "grades": None if self.grades is None else self.grades.to_dicts(),
            "confidence_level": self.confidence_level,
            "rows": self.n_rows,
            "clipped_rows": self.n_clipped,
            "population": self.population.strip() or None,
        }

    def __str__(self) -> str:
        return "\n".join([self.sentence(), *(f"  {measure}" for measure in self.measures)])

    def __repr__(self) -> str:
        return f"<Validation: p = {_numbers.nearest(self.p_value)}, {_numbers.rows(self.n_rows)}>"


def validate(
    y: ArrayLike | ScoredData,
    scores: ArrayLike | None = None,
    *,
    grades: ArrayLike | None = None,
    assigned: Mapping[Hashable, float] | None = None,
    confidence_level: float = 0.95,
    n_draws: int | str = "auto",
    random_state: Seed = 0,
    importance_weight: ArrayLike | None = None,
    weight_bound: float | None = None,
    groups: ArrayLike | None = None,
    max_group_size: int | None = None,
    pos_label: Hashable | None = None,
    classes: ArrayLike | None = None,
) -> Validation:
    """Return the table that validators of a model ask for: what is proved, what is approximate, what is measured.

    Claimed: the limits of expected / observed hold for every distribution of labels given the scores; those of the
    Brier score for every distribution; those of the grades for all grades at once. If the score is calibrated, the
    p-value is at most u with probability at most u, for every u and number of rows, over random
    seeds. Slope, intercepts and AUC have asymptotic limits, and the parts of the Brier score none. Assumed: rows are
    independent, and the model was not trained on them. For the Brier score, the rows are draws from one distribution
    whose order, or with groups the names of groups, says nothing about scores and labels.

    Parameters
    ----------
    y : array-like of shape (n,), or ScoredData
        Labels of two classes; or the result of `calibrant.scored`. Its segments are the grades.
    scores : array-like of shape (n,), (n, 1), or (n, 2) from `predict_proba`
        Predicted probabilities of the positive class.
    grades : array-like of shape (n,), default=None
        The rating grade of each row.
    assigned : mapping from grade to probability, default=None
        What was assigned to each grade. None takes the mean score of the grade's rows.
    confidence_level : float, default=0.95
        Confidence in each interval.
    n_draws : int or "auto", default="auto"
        Draws of labels for the exact test. "auto" is 999, and down to 99 for a million rows or more.
    random_state : int, Generator, RandomState or None, default=0
        Draws the labels of the test, together with the rows: the same rows in the same order give the same p-value.
        Choose it before you look: the claim is over these draws too, and the best of several seeds breaks it.
    importance_weight, weight_bound : array-like of shape (n,), float, optional
        How much each row counts, such as a survey weight, and a number that no weight can exceed, which is needed. What
        is said is then about the weighted population, and the test is asymptotic.
    groups, max_group_size : array-like of shape (n,), int, optional
        Which rows belong together, such as those of one customer, and as how many rows a group counts at most, which is
        needed. What is said is then about rows of new groups, and the test is asymptotic.
    pos_label, classes
        As in `BinningCalibrator`.

    Returns
    -------
    Validation

    Notes
    -----
    *Slope and intercept*: maximum likelihood for logit P(Y = 1) = intercept + slope logit(score), with Wald limits.
    *Intercept, slope 1*: the same with the slope fixed (calibration in the large). Scores are clipped to
    [1e-6, 1 - 1e-6]. Where labels are separated, or all scores are equal, there is no estimate.

    *Expected / observed*: mean score over mean label. Given the scores, the mean of E[Y | score] over the rows lies in
    binomial limits (`calibrant.intervals.non_identical`), so the ratio of mean score and that mean does too.

    *Kuiper's test*: the range of the cumulative sums of (label - score) / n in the order of the scores; tied scores are
    one step. If the score is calibrated, the labels given the scores are Bernoulli draws with known rates. M sets of
    labels are drawn, and p = (1 + how many of them have a range at least as large) / (1 + M). The draws depend on the
    seed and on the rows: with one fixed set of draws for all data the p-value of n rows would always err to one side.

    *Weights and groups*: expected / observed is E[score] / E[label] of the population. With T and S the weighted sums
    of labels and scores of a row or group, E[T] / E[T + S] is a mean in which T + S is the weight, and has limits by
    bets. So have the rates of grades, by Bonferroni's rule; with groups, all grades that there are must be among the
    rows or in `assigned`. Slopes have the variance of sums over rows or groups (the
    sandwich), AUC that of Obuchowski (1997). Labels are not independent given the scores, so there is no exact test:
    the differences of each row or group are multiplied by random signs (the wild bootstrap).

    *CORP*: with r the isotonic regression of labels on scores, miscalibration = Brier(score) - Brier(r),
    discrimination = Brier(mean label) - Brier(r), uncertainty = Brier(mean label);
    Brier score = miscalibration - discrimination + uncertainty.

    References
    ----------
    Cox (1958), "Two further applications of a model for binary regression". Arrieta-Ibarra, Gujral, Tannen, Tygert and
    Xu (2022), "Metrics of calibration for probabilistic predictions", JMLR 23. Dimitriadis, Gneiting and Jordan (2021),
    "Stable reliability diagrams for probabilistic classifiers", PNAS 118. Van Calster et al. (2019), "Calibration: the
    Achilles heel of predictive analytics".

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import validate
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=4_000)
    >>> table = validate(rng.uniform(size=4_000) < scores**2, scores)
    >>> table.p_value
    0.001
    >>> print(table["expected / observed"])
    expected / observed: 1.512 (proved: 1.446 to 1.582)
    """
    alpha = error_budget(confidence_level)
    draws = (Integer(19) | Only("auto")).check("n_draws", n_draws)
    read = read_forecasts(y, scores, pos_label, classes, grades, importance_weight, groups)
    rows, units = Units.bounded_of(read, weight_bound, max_group_size)
    if units.row_weights is None:
        check_alone(rows)
    codes, probabilities = rows.codes, np.asarray(rows.scores, dtype=np.float64)
    if isinstance(draws, str):
        draws = int(np.clip(_MOST_WORK / codes.size, _FEWEST_DRAWS, _DRAWS))
    generator, basis = generator_of(random_state, probabilities, codes), EXACT_TEST
    if units.row_weights is None:
        kuiper, p_value = _kuiper_test(codes, probabilities, draws, generator)
    else:
        (kuiper, p_value), basis = _kuiper_by_signs(codes, probabilities, draws, generator, units), ASYMPTOTIC
    bounds: dict[str, Any] = {"weight_bound": weight_bound, "max_group_size": max_group_size}
    brier = brier_score(read, confidence_level=confidence_level, **bounds)
    measures = (
        _ratio(codes, probabilities, alpha, units),
        *_cox(codes, probabilities, alpha, units),
        Measure("Kuiper statistic", kuiper, math.nan, math.nan, 0.0, MEASURED),
        Measure("p-value of calibration", p_value, math.nan, math.nan, math.nan, basis),
        Measure("Brier score", brier.value, brier.lower, brier.upper, math.nan, PROVED),
        *_corp(codes, probabilities, units),
        _auc(codes, probabilities, alpha, units),
    )
    return Validation(
        measures=measures,
        p_value=p_value,
        n_draws=draws,
        grades=None if rows.segment is None else _grades(rows, rows.segment, assigned, alpha, units),
        confidence_level=float(confidence_level),
        n_rows=codes.size,
        n_clipped=int(np.count_nonzero((probabilities < _CLIP) | (probabilities > 1.0 - _CLIP))),
        population=units.population,
    )


def _ratio(codes: CodeArray, scores: FloatArray, alpha: float, units: Units) -> Measure:
    if units.row_weights is not None:
        labels = codes.astype(np.float64)
        expected, observed = units.mean(scores), units.mean(labels)
        low, high = units.share_limits(labels, scores, alpha)
        ratio = expected / observed if observed else math.inf
        most = 1.0 / low - 1.0 if low > 0.0 else math.inf
        return Measure("expected / observed", ratio, 1.0 / high - 1.0, most, 1.0, PROVED)
    n, k, mean = codes.size, int(codes.sum()), float(scores.mean())
    limits = non_identical(n, k, alpha / 2.0, identical=bool((scores == scores[0]).all()))
    low, high = float(limits.lower), float(limits.upper)
    value = mean * n / k if k else math.inf
    upper = mean / low if low > 0.0 else math.inf
    return Measure("expected / observed", value, mean / high, upper, 1.0, PROVED)


def _cox(codes: CodeArray, scores: FloatArray, alpha: float, units: Units) -> tuple[Measure, Measure, Measure]:
    """Slope and intercept of the labels on the logits, and the intercept for slope 1."""
    x, z = logit(np.clip(scores, _CLIP, 1.0 - _CLIP)), float(-ndtri(alpha / 2.0))
    nan = (math.nan,) * 3
    slope, intercept, in_the_large = nan, nan, nan
    if 0 < codes.sum() < codes.size:
        weights = np.ones(codes.size) if units.row_weights is None else units.row_weights
        large = float(brentq(lambda shift: units.mean(expit(x + shift) - codes), -60.0, 60.0, xtol=1e-12))
        variance = _variances(codes, np.ones((codes.size, 1)), expit(x + large), weights, units)
        in_the_large = _around(large, variance[0], z)
        if _overlap(codes, scores):
            fit = fit_logistic(x[:, None], codes.astype(np.float64), weights)
            b, a = float(fit.coefficients[0]), fit.intercept
            design = np.column_stack([np.ones(codes.size), x])
            variance = _variances(codes, design, expit(a + b * x), weights, units)
            slope, intercept = _around(b, variance[1], z), _around(a, variance[0], z)
    return (
        Measure("slope", *slope, 1.0, ASYMPTOTIC),
        Measure("intercept", *intercept, 0.0, ASYMPTOTIC),
        Measure("intercept, slope 1", *in_the_large, 0.0, ASYMPTOTIC),
    )


def _variances(codes: CodeArray, design: FloatArray, p: FloatArray, weights: FloatArray, units: Units) -> FloatArray:
    """Variances of logistic coefficients: by the model, or by the sums of independent units (the sandwich)."""
    inverse = np.linalg.inv((design * (weights * p * (1.0 - p))[:, None]).T @ design)
    if units.row_weights is None:
        return np.asarray(np.diag(inverse))
    parts = np.column_stack([units.sums(column * (codes - p)) for column in design.T])
    return np.asarray(np.diag(inverse @ (parts.T @ parts) @ inverse) * len(parts) / max(len(parts) - 1, 1))


def _around(value: float, variance: float, z: float) -> tuple[float, float, float]:
    radius = z * math.sqrt(variance)
    return value, value - radius, value + radius


def _overlap(codes: CodeArray, scores: FloatArray) -> bool:
    """Whether no threshold separates the labels: only then has the likelihood a maximum."""
    positive, negative = scores[codes == 1], scores[codes == 0]
    return bool(positive.min() < negative.max() and negative.min() < positive.max())


def _kuiper_test(codes: CodeArray, scores: FloatArray, draws: int, rng: np.random.Generator) -> tuple[float, float]:
    """Range of the cumulative differences, and its p-value from labels drawn with the scores as rates."""
    values, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    n, expected = codes.size, np.cumsum(values * counts)
    seen = _range(np.cumsum(np.bincount(inverse, codes)) - expected, n)
    ends, ordered = np.cumsum(counts) - 1, np.repeat(values, counts)
    single = values.size == n
    few = values.size <= n / 4
    larger = 0
    for _ in range(draws):
        if few:
            sums = np.cumsum(rng.binomial(counts, values))
        else:
            sums = np.cumsum(rng.random(n) < ordered, dtype=np.int64)
            sums = sums if single else sums[ends]
        larger += _range(sums - expected, n) >= seen - _ROUNDING
    return seen, (1 + larger) / (1 + draws)


def _kuiper_by_signs(
    codes: CodeArray, scores: FloatArray, draws: int, rng: np.random.Generator, units: Units
) -> tuple[float, float]:
    """The same, weighted, with a p-value from the differences of units multiplied by random signs."""
    order = np.argsort(scores, kind="stable")
    ends = np.flatnonzero(np.diff(scores[order], append=np.inf))
    weights = np.ones(codes.size) if units.row_weights is None else units.row_weights
    off = (weights * (codes - scores))[order]
    unit = (np.arange(codes.size) if units.unit is None else units.unit)[order]
    total, n_units = float(weights.sum()), int(unit.max()) + 1
    seen = _range(np.cumsum(off)[ends], total)
    signs = (rng.choice([-1.0, 1.0], size=n_units)[unit] for _ in range(draws))
    larger = sum(_range(np.cumsum(off * sign)[ends], total) >= seen - _ROUNDING for sign in signs)
    return seen, (1 + larger) / (1 + draws)


def _range(path: FloatArray, n: float) -> float:
    """Range of a path that starts at 0."""
    return (max(float(path.max()), 0.0) - min(float(path.min()), 0.0)) / n


def _corp(codes: CodeArray, scores: FloatArray, units: Units) -> list[Measure]:
    inverse = np.unique(scores, return_inverse=True)[1]
    each = np.ones(codes.size) if units.row_weights is None else units.row_weights
    weights = np.bincount(inverse, each)
    fitted = isotonic_regression(np.bincount(inverse, each * codes) / weights, sample_weight=weights)[inverse]
    mean, given, best = (units.mean(values) for values in (codes, (codes - scores) ** 2, (codes - fitted) ** 2))
    uncertainty = mean * (1.0 - mean)
    parts = {"miscalibration": given - best, "discrimination": uncertainty - best, "uncertainty": uncertainty}
    ideal = {"miscalibration": 0.0}
    return [
        Measure(name, max(value, 0.0), math.nan, math.nan, ideal.get(name, math.nan), MEASURED)
        for name, value in parts.items()
    ]


def _auc(codes: CodeArray, scores: FloatArray, alpha: float, units: Units) -> Measure:
    if not 0 < codes.sum() < codes.size:
        return Measure("AUC", math.nan, math.nan, math.nan, math.nan, ASYMPTOTIC)
    value, covariance = delong(codes, [scores], units)
    lower, upper = normal_limits(float(value[0]), float(covariance[0, 0]), alpha)
    return Measure("AUC", float(value[0]), max(lower, 0.0), min(upper, 1.0), math.nan, ASYMPTOTIC)


def _grades(
    rows: MemoryRows, index: IndexArray, assigned: Mapping[Hashable, float] | None, alpha: float, units: Units
) -> GradeTable:
    names = rows.segment_names
    counts = np.bincount(index, minlength=len(names))
    positives = np.bincount(index, rows.codes, minlength=len(names)).astype(np.int64)
    rate, weights = positives / counts, rows.weights
    if weights is None:
        limits = non_identical(counts, positives, sidak_level(alpha, len(names)) / 2.0)
        mean_score = np.bincount(index, rows.scores, minlength=len(names)) / counts
    else:
        total = np.bincount(index, weights, minlength=len(names))
        rate = np.bincount(index, weights * rows.codes, minlength=len(names)) / total
        mean_score = np.bincount(index, weights * rows.scores, minlength=len(names)) / total
        outcomes = rows.codes.astype(np.float64) if assigned else (rows.codes - rows.scores + 1.0) / 2.0
        # given its grade, a weighted row is a draw like others of the grade; of groups, the grades must be fixed
        limits = units.means(outcomes, index, len(names), alpha / max(len(names), len(assigned or ())))
        if not assigned:  # the mean of label minus score has limits, whatever the mean score of the grade
            ends = (np.clip(mean_score + 2.0 * end - 1.0, 0.0, 1.0) for end in (limits.lower, limits.upper))
            limits = Interval(*ends)
    given = mean_score if assigned is None else _assigned(assigned, names)
    order = np.argsort(given, kind="stable")
    grade = np.empty(len(names), dtype=object)
    grade[:] = names
    return GradeTable(
        grade=grade[order],
        counts=counts[order].astype(np.int64),
        positives=positives[order],
        rate=rate[order],
        assigned=given[order],
        lower=limits.lower[order],
        upper=limits.upper[order],
    )


def _assigned(assigned: Any, names: tuple[Hashable, ...]) -> FloatArray:
    if not isinstance(assigned, Mapping):
        raise InvalidTypeError("assigned", "be a mapping from grade to probability", got=shown(assigned))
    missing = [name for name in names if name not in assigned]
    if missing:
        raise InvalidValueError("assigned", "have a probability for each grade", got=f"none for {missing[0]!r}")
    given = np.array([float(assigned[name]) for name in names])
    if not ((given >= 0.0) & (given <= 1.0)).all():
        raise InvalidValueError("assigned", "be probabilities in [0, 1]", got=shown(dict(assigned)))
    return given


def _or_none(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
