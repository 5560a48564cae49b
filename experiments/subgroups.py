"""Audits and repairs of subgroups that overlap: how often nothing is shown, what is found, what is
repaired, how fast.

    python experiments/subgroups.py nulls      # calibrated scores: is anything shown? 400 sets each
    python experiments/subgroups.py power      # planted subgroups, up to triples: are they found?
    python experiments/subgroups.py repair     # SubgroupCalibrator, beside mcgrad if installed
    python experiments/subgroups.py coverage   # is its guarantee broken? the truth is known
    python experiments/subgroups.py speed      # 10^6 rows, 8 attributes, pairs
"""

import sys
import time
from collections.abc import Callable

import numpy as np
import pandas as pd
from scipy.special import expit

from calibrant import SubgroupCalibrator, audit
from calibrant.assess.metrics.bin_sums import read_forecasts
from calibrant.assess.subgroups.audit_subgroups import Question, audit_subgroups
from calibrant.params.attributes import read_attributes

ALPHA = 0.05
NULLS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "skewed": lambda rng, n: rng.beta(0.5, 5.0, n),
    "tied": lambda rng, n: rng.choice([0.1, 0.5, 0.9], n),
    "rare": lambda rng, n: rng.beta(1.0, 300.0, n),
}


def attributes(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Six attributes: text, a truth value, a tied number, an untied one, and one with an atom and
    missing values.
    """
    gain = np.where(rng.random(n) < 0.6, 0.0, rng.exponential(size=n))
    return pd.DataFrame(
        {
            "sex": rng.choice(["f", "m"], n),
            "region": rng.choice(["north", "south", "east", "west"], n, p=[0.4, 0.3, 0.2, 0.1]),
            "smoker": rng.random(n) < 0.25,
            "age": np.round(rng.normal(50.0, 15.0, n)),
            "income": rng.normal(size=n),
            "gain": np.where(rng.random(n) < 0.1, np.nan, gain),
        }
    )


def nulls(sets: int = 400) -> None:
    """How often anything is shown of scores that are calibrated."""
    for n, order in ((5_000, 3), (100_000, 2)):
        for kind, scores_of in NULLS.items():
            shown = 0  # the test is exact for any number of draws
            for seed in range(sets):
                rng = np.random.default_rng([seed, n])
                scores = scores_of(rng, n)
                rows = read_forecasts(rng.random(n) < scores, scores, None, (False, True))
                question = Question(order=order, n_draws=99)
                shown += audit_subgroups(
                    rows, read_attributes(attributes(rng, n)), question
                ).is_any_off
            print(f"null {kind:7} n = {n:7,}: shown in {shown} of {sets} sets", flush=True)


def planted(rng: np.random.Generator, n: int, share: float) -> tuple[pd.DataFrame, np.ndarray]:
    """Attributes, and a planted subgroup of two attributes with about this share of the rows."""
    frame = attributes(rng, n)
    if share < 0.07:
        return frame, np.asarray((frame["region"] == "east") & frame["smoker"])
    return frame, np.asarray((frame["region"] == "east") & (frame["sex"] == "f"))


def power(sets: int = 60) -> None:
    """How often a planted subgroup is noticed and named, and which part of its error is proved."""
    for n, share, error in (
        (20_000, 0.05, 0.07),
        (20_000, 0.10, 0.05),
        (5_000, 0.05, 0.13),
        (20_000, 0.05, 0.15),
    ):
        noticed = 0
        named = 0
        proved = []
        for seed in range(sets):
            rng = np.random.default_rng([seed, n])
            frame, inside = planted(rng, n, share)
            scores = rng.beta(2.0, 5.0, n) * (1.0 - error)
            y = rng.random(n) < scores + error * inside
            found = audit(y, scores, attributes=frame, order=3, min_share=0.03).by_attributes
            words = {"region = east", "smoker = True" if share < 0.07 else "sex = f"}
            overlapping = [one for one in found.findings if words & set(one.subgroup.split(", "))]
            noticed += found.is_any_off
            named += bool(overlapping)
            proved.append(max((one.error for one in found.findings), default=0.0))
        share_seen = f"{inside.mean():.3f} of rows"
        print(
            f"power n = {n:,}, {share_seen}, + {error}: is any {noticed / sets:.2f}, named"
            f" {named / sets:.2f}, proved size {np.mean(proved):.3f} ="
            f" {np.mean(proved) / error:.2f} of the truth, {found.n_subgroups} subgroups",
            flush=True,
        )
    bounds = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        scores = rng.beta(2.0, 5.0, 100_000)
        found_audit = audit(
            rng.random(100_000) < scores, scores, attributes=attributes(rng, 100_000)
        )
        bounds.append(found_audit.subgroups_upper_bound)
    print(f"upper bound over pairs, n = 100,000: {np.mean(bounds):.4f}", flush=True)


def off_world(
    rng: np.random.Generator, n: int
) -> tuple[pd.DataFrame, np.ndarray, np.ndarray, np.ndarray]:
    """Attributes, scores, true rates and labels: scores ignore sex, age and region, which interact."""
    frame = attributes(rng, n)
    signal = rng.normal(size=n)
    old = (frame["age"] - 50.0) / 15.0
    effect = (
        0.5 * old * (frame["sex"] == "f")
        - 0.6 * (frame["region"] == "east")
        + 0.4 * frame["smoker"]
    )
    rates = expit(signal - 1.0 + effect.to_numpy())
    return frame, expit(signal - 1.0), rates, (rng.random(n) < rates).astype(int)


def log_loss(rates: np.ndarray, predicted: np.ndarray) -> float:
    """Expected log loss, given the true rates."""
    return float(-np.mean(rates * np.log(predicted) + (1.0 - rates) * np.log1p(-predicted)))


def n_proved_bad(y: np.ndarray, predicted: np.ndarray, frame: pd.DataFrame) -> int:
    """Subgroups whose limits, for all at once, do not hold the mean prediction."""
    table = audit(y, predicted, attributes=frame, min_share=0.02).by_attributes.table
    return int(
        np.count_nonzero((table.mean_score < table.lower) | (table.mean_score > table.upper))
    )


def mcgrad_predictions(train: tuple, test: tuple) -> np.ndarray | None:
    """What mcgrad predicts for the rows of `test`; None if it is not installed."""
    try:
        from mcgrad.methods import MCGrad
    except ImportError:
        return None
    frame, scores, y = train
    named = {"categorical_feature_column_names": ["sex", "region"]}
    named["numerical_feature_column_names"] = ["smoker", "age", "income", "gain"]
    rows = frame.assign(smoker=frame["smoker"].astype(float), p=scores, y=y)
    model = MCGrad().fit(rows, "p", "y", **named)
    other = test[0].assign(smoker=test[0]["smoker"].astype(float), p=test[1])
    return np.asarray(model.predict(other, "p", **named))


def repair(seeds: int = 8, n: int = 40_000) -> None:
    """Subgroups proved bad on fresh rows, before and after, and the log loss beside mcgrad's on the
    same rows.
    """
    rows = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        frame, scores, _, y = off_world(rng, n)
        fresh, fresh_scores, rates, fresh_y = off_world(rng, n)
        fitted = SubgroupCalibrator(min_share=0.02).fit(scores, y, attributes=frame)
        ours = fitted.predict(fresh_scores, attributes=fresh)
        half = rng.permutation(n)[: n // 2]
        theirs = mcgrad_predictions(
            (frame.iloc[half], scores[half], y[half]), (fresh, fresh_scores)
        )
        rows.append(
            {
                "bad before": n_proved_bad(fresh_y, fresh_scores, fresh),
                "bad after": n_proved_bad(fresh_y, ours, fresh),
                "bad mcgrad": np.nan if theirs is None else n_proved_bad(fresh_y, theirs, fresh),
                "log loss raw": log_loss(rates, fresh_scores),
                "log loss": log_loss(rates, ours),
                "log loss mcgrad": np.nan if theirs is None else log_loss(rates, theirs),
                "log loss truth": log_loss(rates, rates),
                "epsilon": fitted.guarantee_.epsilon,
            }
        )
    print(pd.DataFrame(rows).mean().to_string(), flush=True)


def coverage(draws: int = 200, n: int = 2_000) -> None:
    """How often the guarantee of SubgroupCalibrator is broken, at 90 % confidence.

    Errors are sums over a grid.
    """
    rng = np.random.default_rng(0)
    kinds = np.array([(a, b) for a in (0, 1) for b in (0, 1, 2)])
    weight = np.array([0.3, 0.2, 0.1, 0.1, 0.2, 0.1])
    off = np.array([0.0, 0.15, -0.1, 0.0, 0.05, -0.2])
    grid = (np.arange(40) + 0.5) / 40
    kind_of = np.repeat(np.arange(6), 40)
    score_of = np.tile(grid, 6)
    everyone = {"a": kinds[kind_of, 0] == 1, "b": kinds[kind_of, 1].astype(str)}
    mass = weight[kind_of] / 40
    broken = 0
    for _ in range(draws):
        kind = rng.choice(6, n, p=weight)
        scores = rng.choice(grid, n)
        y = rng.random(n) < np.clip(scores + off[kind], 0.0, 1.0)
        frame = {"a": kinds[kind, 0] == 1, "b": kinds[kind, 1].astype(str)}
        said = (
            fitted := SubgroupCalibrator(min_share=0.05).fit(scores, y, attributes=frame)
        ).guarantee_
        error = np.clip(score_of + off[kind_of], 0.0, 1.0) - fitted.predict(
            score_of, attributes=everyone
        )
        missed = False
        for number, words in enumerate(said.regions):
            inside = np.ones(240, dtype=bool)
            for condition in words.split(", ") if words != "all rows" else []:
                name, value = condition.split(" = ")
                inside &= np.array([str(one) == value for one in everyone[name]])
            true = float((mass * error)[inside].sum() / mass[inside].sum())
            missed |= not said.errors.lower[number] <= true <= said.errors.upper[number]
        broken += missed
    print(
        f"guarantee broken in {broken} of {draws} draws, at most {0.1 * draws:g} allowed on"
        " average",
        flush=True,
    )


def speed(n: int = 1_000_000) -> None:
    """Seconds for an audit of 8 attributes, pairs, 99 sets of drawn labels."""
    rng = np.random.default_rng(0)
    frame = attributes(rng, n).assign(score2=rng.normal(size=n), grade=rng.integers(0, 5, n))
    scores = rng.beta(2.0, 5.0, n)
    for error in (0.0, 0.05):
        y = rng.random(n) < np.clip(scores + error * (frame["sex"] == "f"), 0.0, 1.0)
        start = time.perf_counter()
        before = time.process_time()
        found = audit(y, scores, attributes=frame).by_attributes
        taken = time.perf_counter() - start
        busy = time.process_time() - before
        found_text = f"{found.n_subgroups} subgroups, {found.n_draws} draws"
        print(
            f"speed: {n:,} rows, error {error}: {taken:.1f} s, {busy:.1f} s of CPU, {found_text}",
            flush=True,
        )


if __name__ == "__main__":
    for name in sys.argv[1:] or ["nulls", "power", "repair", "coverage", "speed"]:
        {"nulls": nulls, "power": power, "repair": repair, "coverage": coverage, "speed": speed}[
            name
        ]()
