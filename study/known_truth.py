"""How often statements about calibration are true, where the truth is known.

The part `coverage` of the study. What people use is compared with calibrant, in worlds whose true
rates are formulas. A statement has a nominal level; it is counted how often it is false. Worlds,
sizes, levels and the number of draws were fixed before the full run; `corrected` was added after
it. A package that is not installed is left out.
"""

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, logit
from scipy.stats import binomtest, chi2, norm

from calibrant import BinningCalibrator, Calibrator, DriftMonitor, GuaranteeMonitor

N_BINS = 10
BAND_LEVEL = 0.9
ALARM_LEVEL = 0.95
RESAMPLES = 200
GRID = 50_000
Line = dict[str, Any]
Limits = tuple[np.ndarray, np.ndarray]


def dented(scores: np.ndarray) -> np.ndarray:
    """Calibrated, but for a narrow range of scores whose rate is half of what they say."""
    return np.where((scores > 0.6) & (scores < 0.65), scores / 2, scores)


WORLDS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], Callable[..., np.ndarray]]] = {
    "calibrated": (lambda uniform: uniform, lambda scores: scores),
    "overconfident": (lambda uniform: uniform, lambda scores: expit(0.5 * logit(scores))),
    "rare": (lambda uniform: 0.1 * uniform**2, lambda scores: scores),
    "dented": (lambda uniform: uniform, dented),
}
"""Scores from uniform numbers, and the true rate at each score."""


class World:
    """A world of scores: its population on a fine grid, and samples."""

    def __init__(self, name: str) -> None:
        self.make, self.rate = WORLDS[name]
        self.population = self.make((np.arange(GRID) + 0.5) / GRID)
        self.rates = self.rate(self.population)

    def sample(self, rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Scores and labels of independent rows."""
        scores = self.make(rng.uniform(size=n))
        return scores, (rng.uniform(size=n) < self.rate(scores)).astype(int)

    def mean_in(self, region: np.ndarray, values: np.ndarray, n_regions: int) -> np.ndarray:
        """The mean of values over the population of each region."""
        rows = np.bincount(region, minlength=n_regions)
        return np.bincount(region, values, n_regions) / np.maximum(rows, 1)


def wilson(positives: np.ndarray, rows: np.ndarray, shared_by: int = 1) -> Limits:
    """Wilson's limits of each bin: on its own, or with the error level shared by some bins."""
    z = norm.isf((1 - BAND_LEVEL) / 2 / shared_by)
    middle = (positives + z**2 / 2) / (rows + z**2)
    half = z / (rows + z**2) * np.sqrt(positives * (1 - positives / rows) + z**2 / 4)
    return middle - half, middle + half


def bootstrap(
    rng: np.random.Generator, region: np.ndarray, y: np.ndarray, n_regions: int
) -> Limits:
    """Percentiles of the rate of each bin over resampled rows."""
    rates = np.empty((RESAMPLES, n_regions))
    for number in range(RESAMPLES):
        chosen = rng.integers(0, y.size, y.size)
        rows = np.bincount(region[chosen], minlength=n_regions)
        positives = np.bincount(region[chosen], y[chosen], n_regions)
        rates[number] = positives / np.maximum(rows, 1)
    tail = (1 - BAND_LEVEL) / 2
    low, high = np.quantile(rates, [tail, 1 - tail], axis=0)
    return low, high


def misses_of_corrected(world: World, rng: np.random.Generator, n: int) -> Line:
    """As `misses_of_bins`, for Wilson's limits with Bonferroni's correction."""
    scores, y = world.sample(rng, n)
    edges = np.quantile(scores, np.arange(1, N_BINS) / N_BINS)
    region = np.searchsorted(edges, scores)
    truth = world.mean_in(np.searchsorted(edges, world.population), world.rates, N_BINS)
    rows = np.bincount(region, minlength=N_BINS)
    low, high = wilson(np.bincount(region, y, N_BINS), rows, N_BINS)
    wrong = bool(((truth < low) | (truth > high)).any())
    return {"Wilson limits, Bonferroni": (wrong, float((high - low).mean()))}


def misses_of_bins(world: World, rng: np.random.Generator, n: int) -> Line:
    """Whether the limits of some bin miss its rate, by method; and their mean width."""
    scores, y = world.sample(rng, n)
    edges = np.quantile(scores, np.arange(1, N_BINS) / N_BINS)
    region = np.searchsorted(edges, scores)
    truth = world.mean_in(np.searchsorted(edges, world.population), world.rates, N_BINS)
    rows = np.bincount(region, minlength=N_BINS)
    positives = np.bincount(region, y, N_BINS)
    bands = {
        "Wilson limits for each bin": wilson(positives, rows),
        "bootstrap percentiles for each bin": bootstrap(rng, region, y, N_BINS),
    }
    found = {
        name: (bool(((truth < low) | (truth > high)).any()), float((high - low).mean()))
        for name, (low, high) in bands.items()
    }
    found["calibrant binning"] = of_ours(BinningCalibrator(N_BINS), world, scores, y)
    found["calibrant"] = of_ours(Calibrator(), world, scores, y)
    belt = of_belt(world, scores, y)
    return found if belt is None else {**found, "probcal calibration belt": belt}


def of_ours(calibrator: Any, world: World, scores: np.ndarray, y: np.ndarray) -> tuple[bool, float]:
    """Whether an average prediction is farther from the rate than the guarantee says."""
    fitted = calibrator.fit(scores, y)
    guarantee = fitted.guarantee_
    region = fitted.partition_.assign(world.population)
    n_regions = fitted.partition_.n_regions
    truth = world.mean_in(region, world.rates, n_regions)
    predicted = world.mean_in(region, fitted.predict(world.population), n_regions)
    wrong = (truth < guarantee.lower - 1e-9) | (truth > guarantee.upper + 1e-9)
    wrong |= np.abs(predicted - truth) > guarantee.radius + 1e-4
    return bool(wrong.any()), float((guarantee.upper - guarantee.lower).mean())


def of_belt(world: World, scores: np.ndarray, y: np.ndarray) -> tuple[bool, float] | None:
    """Whether probcal's belt, simultaneous by its documentation, misses the curve of rates."""
    try:
        from probcal import calibration_belt
    except ImportError:
        return None
    belt = calibration_belt(y, scores, confidence=(0.8, BAND_LEVEL))
    low, high = belt.bands[BAND_LEVEL]
    truth = world.rate(np.asarray(belt.grid_p))
    return bool(((truth < low) | (truth > high)).any()), float(np.mean(high - low))


def bands(
    draws: int, name: str, n_rows: str, look: Callable[..., Line] = misses_of_bins
) -> Iterator[Line]:
    """Whether the limits of all bins hold at once."""
    n = int(n_rows)
    world = World(name)
    rng = np.random.default_rng([2, n, len(name)])
    found = [look(world, rng, n) for _ in range(draws)]
    for method in found[0]:
        yield {
            "question": "bands" if look is misses_of_bins else "corrected",
            "world": name,
            "rows": n,
            "method": method,
            "nominal": round(1 - BAND_LEVEL, 3),
            "draws": draws,
            "false": sum(one[method][0] for one in found),
            "width": float(np.mean([one[method][1] for one in found])),
        }


def corrected(draws: int, name: str, n_rows: str) -> Iterator[Line]:
    """Whether Bonferroni's correction repairs Wilson's limits."""
    return bands(draws, name, n_rows, misses_of_corrected)


BATCHES = 20
BATCH = 250
FITTED = "fitted on 1,000 rows"


def hosmer_lemeshow(p: np.ndarray, y: np.ndarray) -> float:
    """The p-value of the test in ten groups of equal size, with ten degrees of freedom."""
    group = np.argsort(np.argsort(p)) * N_BINS // p.size
    expected = np.bincount(group, p, N_BINS)
    observed = np.bincount(group, y, N_BINS)
    rows = np.bincount(group, minlength=N_BINS)
    variance = expected * (1 - expected / rows)
    return float(chi2.sf(((observed - expected) ** 2 / variance).sum(), N_BINS))


def alarms_of_stream(rng: np.random.Generator, is_fitted: bool) -> dict[str, bool]:
    """Who warns of a stream in which nothing changes.

    Scores are calibrated; or they were calibrated on 1,000 rows by beta calibration.
    """
    world = World("overconfident" if is_fitted else "calibrated")
    known = world.sample(rng, 1_000)
    fitted = BinningCalibrator(N_BINS).fit(*known)
    scores, y = world.sample(rng, BATCHES * BATCH)
    p = beta(*known, scores) if is_fitted else scores
    parts = [slice(at, at + BATCH) for at in range(0, y.size, BATCH)]
    found = {
        "Hosmer-Lemeshow test of each batch": any(
            hosmer_lemeshow(p[part], y[part]) < 1 - ALARM_LEVEL for part in parts
        ),
        "calibrant DriftMonitor": alarm_of_ours(
            DriftMonitor(fitted, confidence_level=ALARM_LEVEL), scores, y, parts
        ),
        "calibrant GuaranteeMonitor": alarm_of_ours(
            GuaranteeMonitor(fitted, confidence_level=ALARM_LEVEL), scores, y, parts
        ),
    }
    theirs = alarm_of_probcal(p, y, parts)
    return found if theirs is None else {**found, "probcal CalibrationMonitor": theirs}


def beta(scores: np.ndarray, y: np.ndarray, new: np.ndarray) -> np.ndarray:
    from calibrant import BetaCalibrator

    return BetaCalibrator().fit(scores, y).predict(new)


def alarm_of_ours(monitor: Any, scores: np.ndarray, y: np.ndarray, parts: list[slice]) -> bool:
    return any(monitor.update(scores[part], y[part]).alarm for part in parts)


def alarm_of_probcal(p: np.ndarray, y: np.ndarray, parts: list[slice]) -> bool | None:
    try:
        from probcal.monitor import CalibrationMonitor
    except ImportError:
        return None
    monitor = CalibrationMonitor(alpha=1 - ALARM_LEVEL)
    return any(monitor.update(y=y[part], p=p[part], label=str(part.start)).alarm for part in parts)


def monitors(draws: int, scores: str) -> Iterator[Line]:
    """Who raises a false alarm within 20 batches of 250 rows."""
    is_fitted = scores == FITTED
    rng = np.random.default_rng([3, is_fitted])
    found = [alarms_of_stream(rng, is_fitted) for _ in range(draws)]
    for method in found[0]:
        yield {
            "question": "monitors",
            "world": scores,
            "rows": BATCHES * BATCH,
            "method": method,
            "nominal": round(1 - ALARM_LEVEL, 3),
            "draws": draws,
            "false": sum(one[method] for one in found),
        }


def subgroups(draws: int) -> Iterator[Line]:
    """Whether p-values of "some subgroup is off" are right where none is."""
    import sys

    sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
    from subgroups import ALPHA, calibrated, our_p_value, their_p_value

    n = 2_000
    found: dict[str, list[float | None]] = {"calibrant audit": [], "mcgrad": []}
    for seed in range(draws):
        rows = calibrated(np.random.default_rng(seed), n)
        found["calibrant audit"].append(our_p_value(rows))
        found["mcgrad"].append(their_p_value(rows))
    for method, values in found.items():
        if None not in values:
            yield {
                "question": "subgroups",
                "world": "calibrated",
                "rows": n,
                "method": method,
                "nominal": ALPHA,
                "draws": draws,
                "false": sum(value <= ALPHA for value in values if value is not None),
            }


QUESTIONS: dict[str, tuple[Callable[..., Iterator[Line]], int]] = {
    "bands": (bands, 200),
    "corrected": (corrected, 2_000),
    "monitors": (monitors, 200),
    "subgroups": (subgroups, 40),
}
"""Each question, and how many draws were fixed for it."""

_ROWS_OF_WORLDS = list(product(WORLDS, ("500", "2000")))
CELLS: dict[str, list[tuple[str, ...]]] = {
    "bands": _ROWS_OF_WORLDS,
    "corrected": _ROWS_OF_WORLDS,
    "monitors": [("calibrated",), (FITTED,)],
    "subgroups": [()],
}
"""What each question is asked about."""


def coverage_part(question: str, *cell: str) -> Iterator[Line]:
    """Ask a question about a cell, with as many draws as were fixed."""
    ask, draws = QUESTIONS[question]
    for line in ask(draws, *cell):
        test = binomtest(int(line["false"]), line["draws"], line["nominal"], "greater")
        yield {**line, "p": float(test.pvalue)}
