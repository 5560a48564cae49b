"""Paths that few rows take: large regions, absorbed edges, learned caps, labels of one kind."""

from typing import Any

import numpy as np
import pyarrow as pa

import calibrant
from calibrant import (
    BinningCalibrator,
    Calibrator,
    DriftMonitor,
    Partition,
    ShiftCalibrator,
    Tally,
    plan,
    scored,
)
from calibrant.assess.check.group_signs import group_signs
from calibrant.calibrators.platt import PlattCalibrator
from calibrant.intervals import MonotoneBand
from calibrant.limits.bet_limits import bet_limits
from calibrant.limits.shift.evidence import Evidence
from calibrant.limits.shift.paper import paper, why_vacuous
from calibrant.sample.reader import rows_of
from calibrant.sample.row_keys import value_keys
from calibrant.shift.prior import mixture_prior
from worlds.questions.base import (
    ATOMS,
    FEW,
    GRID,
    MORE,
    SMOOTH,
    Text,
    World,
    of_calibrator,
    question,
    refused,
    tried,
)
from worlds.questions.limits import bets_on

MANY = World("smooth", 40_000, seed=6)


@question
def planned_curves() -> Any:
    """For the default calibrator, with few and many rows in a region."""
    named = {"calibrator": "Calibrator"}
    asked: list[dict[str, Any]] = [
        {"n": 10_000},
        {"n": 1_000, "n_bins": 5, "confidence_level": 0.5},
        {"n": 400, "n_bins": 3},
        {"epsilon": 0.05},
        {"epsilon": 0.2, "n_bins": 3},
        {"epsilon": 0.9, "n_bins": 4},
        {"n": 100},
        {"n": 3},
        {"n": 10_000, "n_bins": 2},
        {"n": 10_000, "probability": 0.8},
        {"n": 10_000, "pilot": None},
        {"n": 10_000, "base_rate": 0.1},
    ]
    return [tried(plan, **named, **one) for one in asked]


@question
def means_of_many_weighted_rows() -> Any:
    """Most of them are in blocks whose capital is bounded."""
    n = MANY.y.size
    region = np.where(np.arange(n) % 8 == 0, 1, 0)
    given = (MANY.weights / 3.0, np.ones(n), (np.arange(n) > n // 2).astype(float))
    asked = [
        bets_on(outcomes, weights, regions=region, n_regions=3)
        for weights in given
        for outcomes in (MANY.y, MANY.scores)
    ]
    return [bet_limits(units, np.full(3, 0.025)) for units in asked]


def _evidence(counts: list[int], weight_bound: float, weight_floor: float) -> Evidence:
    scores = np.repeat((np.arange(len(counts)) + 0.5) / len(counts), counts)
    tally = Tally.from_data(
        Partition.fixed_width(len(counts)),
        scores,
        np.arange(scores.size) % 3 == 0,
        importance_weight=np.where(np.arange(scores.size) % 2 == 0, weight_floor, weight_bound),
    )
    return Evidence(tally, weight_bound=weight_bound, weight_floor=weight_floor)


@question
def limits_of_the_paper() -> Any:
    """Enough rows for the theorem, too few, too few in one bin, and no floor."""
    asked = [
        _evidence([9_000], 1.0, 1.0),
        _evidence([5_000, 5_000], 1.2, 1.0),
        _evidence([9_000, 1_000], 1.2, 1.0),
        _evidence([1_250, 8_750], 1.0, 1.0),
        _evidence([1_249, 8_751], 1.0, 1.0),
        _evidence([900], 1.5, 1.0),
        _evidence([900], 1.5, 0.0),
        _evidence([20_000, 20_000, 20_000], 2.5, 1.0),
    ]
    return [[why_vacuous(one, alpha), paper(one, alpha)] for one in asked for alpha in (0.1, 0.5)]


def _tied_once(n_tied: int) -> tuple[Any, Any]:
    """Scores without ties but for one value in the middle."""
    scores = np.concatenate([np.arange(400) / 1000, [0.5] * n_tied, 0.6 + np.arange(400) / 1000])
    return scores, (np.arange(scores.size) % 7 < 1 + 5 * scores).astype(int)


@question
def curves_of_absorbed_edges() -> Any:
    found = []
    for n_tied in (6, 30):
        for seed in range(3):
            fitted = Calibrator(n_bins=2, random_state=seed).fit(*_tied_once(n_tied))
            found.append([fitted.partition_.has_absorbed, *of_calibrator(fitted), fitted.to_dict()])
    return found


@question
def signs_of_rows_that_repeat() -> Any:
    """First rows of one label among others, and pairs of rows that agree in all columns."""
    n = 800
    y = SMOOTH.y[:n].copy()
    first = y.copy()
    first[:200] = 0
    pair = np.repeat(SMOOTH.scores[: n // 2], 2)
    same = np.repeat(SMOOTH.y[: n // 2], 2)
    other = same.copy()
    other[:40:2] = 1 - other[:40:2]
    near = same.copy()
    near[:8:2] = 1 - near[:8:2]
    tables = [
        {"s": SMOOTH.scores[:n], "y": first},
        {"s": SMOOTH.scores[:n], "y": 1 - first},
        {"s": pair, "y": same},
        {"s": pair, "y": other},
        {"s": pair, "y": near},
    ]
    found = []
    for columns in tables:
        for most_rows in (5, 150, n):
            data = rows_of(scored(pa.table(columns), score="s", label="y"))
            found.append([len(group_signs(data, most_rows=most_rows))])
    return found


@question
def findings_of_audits() -> Any:
    """What is said of each range, with rare positives too."""
    rare = (MORE.new < 0.01 + 0.04 * MORE.scores).astype(int)
    audits = [
        calibrant.audit(MORE.y, MORE.scores**3),
        calibrant.audit(MORE.y, MORE.scores, segments=MORE.segments),
        calibrant.audit(rare, 0.4 * MORE.scores, segments=MORE.segments),
        calibrant.audit(rare, 0.2 * MORE.scores),
        calibrant.audit(rare, 0.001 + 0.0 * MORE.scores),
    ]
    return [
        [
            [str(finding) for finding in one.findings],
            one.table.is_finest,
            list(one.table.verdict),
            [[part.start, part.stop] for part in one.table.blocks],
        ]
        for one in audits
    ]


@question
def bins_of_groups_with_settings() -> Any:
    """Groups of one row, few groups, segments that have none of the rows set aside."""
    single = np.arange(300)
    rare = np.where(np.arange(300) < 3, "rare", "usual")
    scores = SMOOTH.scores[:300]
    y = SMOOTH.y[:300]
    asked: list[dict[str, Any]] = [
        {"groups": single, "max_group_size": 1},
        {"groups": single // 2, "max_group_size": 1},
        {"groups": single // 2, "segments": rare},
        {"groups": single // 30},
        {"groups": single // 30, "segments": rare, "max_group_size": 30},
        {"importance_weight": 1.0 + single % 3, "weight_bound": 3.0, "segments": rare},
    ]
    settings: list[dict[str, Any]] = [{}, {"pilot": 0.3}, {"partition": Partition.fixed_width(2)}]
    found = []
    for one in asked:
        for setting in settings:
            bins = {} if "partition" in setting else {"n_bins": 3}
            if "partition" in setting and "segments" in one:
                continue
            model = BinningCalibrator(**bins, **setting)
            named = {"segments": np.repeat(["usual"], GRID.size)} if "segments" in one else {}

            def ask(model: Any = model, one: Any = one, named: Any = named) -> Any:
                return [of_calibrator(model.fit(scores, y, **one), **named), model.guarantee_]

            found.append(tried(ask))
    return found


@question
def targets_that_a_learned_cap_changes() -> Any:
    """A few large groups of negative rows: a target is met where groups are capped, and missed
    where all rows count.
    """
    n = 1200
    groups = np.where(np.arange(n) < 500, np.arange(n) // 250, np.arange(n))
    y = np.where(np.arange(n) < 500, 0, SMOOTH.new[:n] < 0.2 + 0.8 * SMOOTH.scores[:n]).astype(int)
    scores = SMOOTH.scores[:n]
    targets = ({"precision": 0.55}, {"npv": 0.5, "precision": 0.5}, {"recall": 0.5})
    found = [
        tried(calibrant.threshold, y, scores, groups=groups, max_group_size=cap, **target)
        for target in targets
        for cap in (None, 2)
    ]
    beside = {"groups": groups, "segments": SMOOTH.segments[:n]}
    found += [tried(calibrant.audit, y, scores, groups=groups)]
    return [*found, tried(calibrant.audit, 1 - y, scores, **beside)]


@question
def targets_of_two_kinds_that_overlap() -> Any:
    found = []
    for scores in (SMOOTH.new, 1.0 - SMOOTH.scores, SMOOTH.scores):
        for precision, npv in ((0.2, 0.5), (0.3, 0.55), (0.36, 0.6)):
            found.append(calibrant.threshold(SMOOTH.y, scores, precision=precision, npv=npv))
    return found


@question
def bands_of_hardly_any_rows() -> Any:
    found = []
    for n in (1, 2, 4, 8):
        for n_cells in ("auto", 1, 3):
            band = MonotoneBand(n_cells=n_cells)
            fitted = tried(band.fit, SMOOTH.scores[:n], SMOOTH.y[:n], classes=(0, 1))
            if fitted is band:
                found.append([band.predict_interval(GRID), band.guarantee_, band.n_runs_])
            else:
                found.append(fitted)
    return found


@question
def rows_outside_of_bins() -> Any:
    """In tables: scores outside the range of the bins, segments they were not cut for, labels of
    other kinds.
    """
    data = pa.table(
        {
            "s": 3.0 * SMOOTH.scores - 1.0,
            "y": SMOOTH.y,
            "part": SMOOTH.segments,
            "kind": np.array(["no", "yes", "perhaps"])[(SMOOTH.scores * 2.01).astype(int)],
            "rare": np.where(np.arange(1500) == 700, 7, SMOOTH.y),
        }
    )
    narrow = Partition.fixed_width(3)
    parts = Partition.by_segment({"north": Partition.fixed_width(2, (-1.0, 0.5))})
    fit = BinningCalibrator(partition=narrow).fit
    by_part = BinningCalibrator(partition=parts).fit
    return [
        refused(fit, scored(data, score="s", label="y")),
        refused(by_part, scored(data, score="s", label="y", segment="part")),
        refused(BinningCalibrator(3).fit, scored(data, score="s", label="kind")),
        refused(BinningCalibrator(3).fit, scored(data, score="s", label="rare")),
        refused(narrow.prepare, [0.2, 1.7, -0.5]),
        refused(parts.prepare, [0.2, 0.7, -3.0], ["north"] * 3),
        refused(Partition.by_segment({"a": narrow}, narrow).prepare, [0.2], [7]),
        refused(Partition.by_segment({3: narrow}, narrow).prepare, [0.2], ["a"]),
    ]


@question
def priors_of_one_class() -> Any:
    return [
        mixture_prior(FEW.scores, np.zeros(60, dtype=int), FEW.new, 0.1),
        mixture_prior(FEW.scores, np.ones(60, dtype=int), FEW.new, 0.1),
        mixture_prior(FEW.scores, FEW.y, FEW.new, 0.1),
        refused(mixture_prior, FEW.scores, FEW.y, np.empty(0), 0.1),
    ]


@question
def keys_of_times() -> Any:
    """The same instants in every unit, and units that are no multiple of others."""
    days = np.array(["2020-01-01", "2024-02-29", "1969-12-31"], dtype="datetime64[D]")
    units = ("D", "h", "m", "s", "ms", "us", "ns", "M", "Y", "W")
    return [[Text(key) for key in value_keys(days.astype(f"datetime64[{one}]"))] for one in units]


@question
def curves_of_a_class_of_ones_own() -> Any:
    """A curve whose fit takes rows and not counts."""

    class Own(PlattCalibrator):
        def fit(self, scores: Any, y: Any, **named: Any) -> Any:
            return super().fit(scores, y, **named)

    fitted = Calibrator(n_bins=4, curve=Own()).fit(SMOOTH.scores[:400], SMOOTH.y[:400])
    return [np.round(part, 6) for part in (fitted.predict(GRID), fitted.predict_interval(GRID))]


@question
def batches_that_end_the_reference() -> Any:
    """As many rows as are missing, one fewer, and one more."""
    found = []
    for size in (199, 200, 201):
        monitor = DriftMonitor(Partition.fixed_width(2), reference=200, random_state=3)
        monitor.update(SMOOTH.scores[:size], SMOOTH.y[:size])
        monitor.update(SMOOTH.scores[size:600], SMOOTH.y[size:600])
        found.append([monitor.summary(), monitor.to_dict()])
    return found


@question
def weights_of_tallies() -> Any:
    """Counts of weighted rows, whose largest weight is known or not; one region has no weight."""
    weights = np.where(ATOMS.scores == 0.0, 0.0, ATOMS.weights)
    partition = Partition.from_edges([0.0, 0.5])

    def ask(bound: float | None) -> Any:
        model = ShiftCalibrator(partition=partition)
        model.fit(ATOMS.scores, ATOMS.y, importance_weight=weights, weight_bound=bound)
        return [*of_calibrator(model), model.guarantee_]

    return [tried(ask, bound) for bound in (None, 3.0, 4.0, 2.9)]


@question
def units_without_weight() -> Any:
    """Groups whose rows all have weight 0, and tables of weighted rows without a bound."""
    groups = SMOOTH.groups
    weights = np.where(groups % 5 == 0, 0.0, SMOOTH.weights / 3.0)
    units = {"importance_weight": weights, "weight_bound": 1.0, "groups": groups}
    data = pa.table({"s": SMOOTH.scores, "y": SMOOTH.y, "w": SMOOTH.weights})
    rows = scored(data, score="s", label="y", weight="w")
    found: list[Any] = [
        calibrant.metrics.brier_score(SMOOTH.y, SMOOTH.scores, **units),
        calibrant.metrics.brier_score(SMOOTH.y, SMOOTH.scores, **units, max_group_size=2),
        tried(calibrant.audit, SMOOTH.y, SMOOTH.scores, **units),
    ]
    for bound in (None, 3.0, 2.5):
        model = ShiftCalibrator(3)
        fitted = tried(model.fit, rows, weight_bound=bound)
        found.append([of_calibrator(model), model.guarantee_] if fitted is model else fitted)
    return found


@question
def thresholds_of_many_groups() -> Any:
    """More scores than thresholds that are tried where rows have groups."""
    targets: list[dict[str, float]] = [{"recall": 0.6}, {"specificity": 0.6}, {"recall": 0.9}]
    return [calibrant.threshold(MORE.y, MORE.scores, groups=MORE.groups, **one) for one in targets]
