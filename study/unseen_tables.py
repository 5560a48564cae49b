"""Tables on sets that no choice has seen.

A set counts once: its figure is the mean over models and splits. Limits of medians over sets are
those of the sign test.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from quoting import NOMINAL, at_least, markdown, read, share, shown
from ranking import holm, mean_ranks, median_limits
from scipy.stats import wilcoxon
from unseen import OURS_BY_SIZE, UNSEEN_MODELS

DEFAULT = "calibrant"
SIGMOID = "scikit-learn sigmoid"
TEMPERATURE = "scikit-learn temperature"
BLEND = "BlendCalibrator"
CLASSIFIER = "calibrant CalibratedClassifier"
FEW_ROWS = 600  # to calibrate
MOST_OVER_SIGMOID = {80: 0.992, 150: 0.993, 300: 0.992, 600: 0.989, 1_000: 0.988}
MOST_EPSILON = {300: 0.25, 600: 0.175, 1_000: 0.14}
FIRST_NEW_SPLIT = 4  # the splits before had been run with earlier versions


def lines(folder: Path, *parts: str, first: int = 0) -> pd.DataFrame:
    """The lines of some parts, for the splits that all of them have, from the `first` on."""
    tables = [read(folder, part) for part in parts]
    common = set.intersection(*(set(table.split) for table in tables))
    table = pd.concat(tables, ignore_index=True)
    return table[table.split.isin(common) & (table.split >= first)]


def compared_unseen(folder: Path, first: int = 0) -> pd.DataFrame:
    """The methods that turn scores into probabilities."""
    return lines(folder, "unseen", "unseen_ours", first=first)


def classifiers(folder: Path, first: int = 0) -> pd.DataFrame:
    """Whole classifiers."""
    return lines(folder, "unseen_classifiers", "unseen_our_classifiers", first=first)


def by_set(table: pd.DataFrame, measure: str = "log_loss") -> pd.DataFrame:
    """A measure of each set (rows) and method (columns)."""
    means = table.groupby(["set", "model", "method"])[measure].mean()
    return means.groupby(["set", "method"]).mean().unstack()


def percent_change(ratios: np.ndarray) -> str:
    """The median of ratios and its limits, rounded outwards, as changes in per cent."""
    median, low, high = median_limits(ratios - 1)
    outwards = f"{np.floor(1e4 * low) / 1e2:+.2f}% to {np.ceil(1e4 * high) / 1e2:+.2f}%"
    return f"{median:+.2%} ({outwards})"


def over_oracle(draws: pd.DataFrame) -> pd.Series:
    """Epsilon over the oracle's, for each set: the median over its models and splits."""
    return (draws.epsilon / draws.oracle).groupby(draws.set).median()


def unseen_guarantees(folder: Path) -> str:
    """Guarantees broken and epsilon over the oracle's, by number of rows."""
    table = read(folder, "unseen_guarantees")
    cells = []
    for method, each in table.groupby("method", sort=False):
        for n, draws in each.groupby("n"):
            median, low, high = median_limits(over_oracle(draws).to_numpy())
            cells.append(
                [
                    f"`{method}`",
                    f"{n:,}",
                    *shown(draws.broken.sum(), len(draws)),
                    f"{draws.regions.median():.0f}",
                    f"{np.ceil(1e3 * draws.epsilon.median()) / 1e3:.3f}",
                    f"{draws.oracle.median():.3f}",
                    f"{median:.2f} ({at_least(low)} to {np.ceil(100 * high) / 100:.2f})",
                ]
            )
    header = ["method", "rows", "broken", "share", "95% limits", "regions", "epsilon", "oracle"]
    return markdown([*header, "epsilon over oracle's (95% limits)"], cells)


def unseen_margins(folder: Path) -> str:
    """What each safety margin costs: medians of half-widths, from the narrowest to epsilon."""
    table = read(folder, "unseen_guarantees")
    steps = {
        "one region at a time, exact limits, all rows": "one_region",
        "all regions simultaneously (the oracle)": "oracle",
        "without the pilot rows": "counted_rows",
        "epsilon: unknown regions, a fitted curve": "epsilon",
    }
    ours = table[table.method == DEFAULT]
    sizes = sorted(ours.n.unique())
    cells = [
        [words, *(f"{ours[ours.n == n][column].median():.3f}" for n in sizes)]
        for words, column in steps.items()
    ]
    return markdown(["half-width, median", *(f"{n:,} rows" for n in sizes)], cells)


def unseen_methods(folder: Path) -> str:
    """Every method against the default: log loss, win rate, post-hoc improvement."""
    table = compared_unseen(folder)
    losses = by_set(table)
    ranks = mean_ranks(losses)
    rivals = [name for name in ranks.index if name != DEFAULT]
    raw = [wilcoxon(losses[name] - losses[DEFAULT]).pvalue for name in rivals]
    corrected = dict(zip(rivals, holm(np.array(raw)), strict=True))
    wins = win_rates(table)
    improved = by_set(table, "brier")
    cells = []
    for name in ranks.index:
        ratios = (losses[name] / losses[DEFAULT]).to_numpy()
        phi = 100 * (improved["raw score"] - improved[name])
        p = corrected.get(name, np.nan)
        cells.append(
            [
                f"**{name}**" if name.startswith(DEFAULT) else name,
                f"{ranks[name]:.1f}",
                "" if name == DEFAULT else percent_change(ratios),
                "" if name == DEFAULT else f"{(ratios > 1).sum()}",
                "" if name == DEFAULT else (f"{p:.3f}" if p >= 0.001 else "<0.001"),
                f"{wins[name]:.0%}",
                f"{phi.mean():.2f} ± {1.96 * phi.std() / np.sqrt(len(phi)):.2f}",
                f"{by_set(table, 'ece')[name].median():.3f}",
            ]
        )
    header = ["method", "mean rank", "log loss over the default's (95% limits)", "default better"]
    return markdown([*header, "p-value, Holm", "win rate", "PHI", "ECE"], cells)


def win_rates(table: pd.DataFrame) -> pd.Series:
    """The share of rivals with a larger Brier score, averaged over sets, models and splits."""
    wide = table.pivot_table(index=["set", "model", "split"], columns="method", values="brier")
    rates = {
        name: (wide.drop(columns=name).gt(wide[name], axis=0)).mean(axis=1).mean() for name in wide
    }
    return pd.Series(rates)


class Contest(NamedTuple):
    """The share of others with a larger log loss, and the mean and largest distance to the best."""

    wins: float
    mean: float
    worst: float

    def __str__(self) -> str:
        return f"{self.wins:.1%}, {self.mean:.2%}, {self.worst:.1%}"


def contest(table: pd.DataFrame, name: str, others: list[str]) -> Contest:
    """How a method does against others, over sets, models and splits."""
    cells = table.pivot_table(index=["set", "model", "split"], columns="method", values="log_loss")
    cells = cells[[name, *others]].dropna()
    wins = cells[others].gt(cells[name], axis=0).mean(axis=1).mean()
    behind = cells[name] / cells.min(axis=1) - 1
    return Contest(wins, behind.mean(), behind.max())


def contests(folder: Path) -> dict[str, dict[int, Contest]]:
    """For each method and number of rows, how it does; after the last, for all numbers of rows.

    Each of ours meets the rivals without the other; a rival meets the other rivals and
    `BlendCalibrator`.
    """
    table = lines(folder, "unseen_sizes", "unseen_our_sizes")
    rivals = [name for name in table.method.unique() if name not in OURS_BY_SIZE]
    found = {}
    for name in (*OURS_BY_SIZE, *rivals):
        others = rivals if name in OURS_BY_SIZE else [BLEND, *rivals]
        others = [other for other in others if other != name]
        found[name] = {
            int(n): contest(each, name, others) for n, each in table.groupby("rows", sort=True)
        }
    return found


def unseen_sizes(folder: Path) -> str:
    """Win rate, mean and largest distance to the best, by number of rows."""
    found = contests(folder)
    cells = [
        [f"**{name}**" if name in OURS_BY_SIZE else name, *map(str, each.values())]
        for name, each in found.items()
    ]
    sizes = (f"{n:,} rows" for n in found[BLEND])
    return markdown(["win rate, mean and worst gap", *sizes], cells)


def sizes_criteria(folder: Path) -> dict[str, tuple[str, str]]:
    """Whether the criteria by number of rows are met, and what was found."""
    found = contests(folder)
    rivals = [name for name in found if name not in OURS_BY_SIZE]
    blend = found[BLEND]
    n_sizes = len(blend)
    firsts = [
        sum(blend[n].wins > max(found[name][n].wins for name in rivals) for n in blend),
        sum(blend[n].mean < min(found[name][n].mean for name in rivals) for n in blend),
        sum(blend[n].worst < min(found[name][n].worst for name in rivals) for n in blend),
    ]
    every = list(found[DEFAULT].values())
    wins = np.mean([one.wins for one in every])
    mean = np.mean([one.mean for one in every])
    worst = max(one.worst for one in every)
    few = lines(folder, "unseen_few", "unseen_our_few")
    sigmoid, temperature, epsilon = [], [], []
    for n, most in MOST_OVER_SIGMOID.items():
        each = few[few.rows == n]
        losses = by_set(each)
        sigmoid.append(geometric_mean(losses[CLASSIFIER] / losses[SIGMOID]) <= most)
        temperature.append(geometric_mean(losses[CLASSIFIER] / losses[TEMPERATURE]) <= 0.99)
        if n in MOST_EPSILON:
            epsilon.append(each.epsilon.median() <= MOST_EPSILON[n])
    return {
        "`BlendCalibrator` first in win rate, mean and worst gap at each n": (
            _verdict(min(firsts) == n_sizes),
            f"{firsts[0]}, {firsts[1]} and {firsts[2]} of {n_sizes} sizes",
        ),
        "default curve: win rate at least 62%, gap at most 0.55% in the mean, 12% at worst": (
            _verdict(wins >= 0.62 and mean <= 0.0055 and worst <= 0.12),
            f"{wins:.0%}, {mean:.2%}, {worst:.0%}",
        ),
        "`CalibratedClassifier` with few rows: over sigmoid; over temperature; epsilon": (
            _verdict(all((*sigmoid, *temperature, *epsilon))),
            f"{sum(sigmoid)} of {len(sigmoid)}, {sum(temperature)} of {len(temperature)}"
            f" and {sum(epsilon)} of {len(epsilon)} sizes",
        ),
    }


def geometric_mean(ratios: pd.Series) -> float:
    """The geometric mean over sets."""
    return float(np.exp(np.log(ratios).mean()))


def unseen_few(folder: Path) -> str:
    """`CalibratedClassifier` with few rows: over scikit-learn's ways, and its epsilon."""
    table = lines(folder, "unseen_few", "unseen_our_few")
    cells = []
    for n, each in table.groupby("rows"):
        losses = by_set(each)
        row = [f"{n:,}", f"{len(losses)}"]
        for rival in (SIGMOID, TEMPERATURE, "uncalibrated, all rows"):
            ratios = losses[CLASSIFIER] / losses[rival]
            row += [f"{geometric_mean(ratios):.3f}", percent_change(ratios.to_numpy())]
        cells.append([*row, f"{each.epsilon.median():.3f}"])
    header = ["rows", "sets"]
    for rival in ("sigmoid", "temperature", "uncalibrated"):
        header += [f"over {rival}: mean", "median (95% limits)"]
    return markdown([*header, "epsilon"], cells)


def unseen_sigmoid(folder: Path) -> str:
    """The default curve over scikit-learn's sigmoid, by kind of model."""
    table = compared_unseen(folder)
    return _by_model(table, DEFAULT, [SIGMOID, "probmetrics quadratic", "venn-abers", "raw score"])


def unseen_classifiers(folder: Path) -> str:
    """`CalibratedClassifier` over each rival, by kind of model."""
    table = classifiers(folder)
    rivals = [name for name in table.method.unique() if name != CLASSIFIER]
    return _by_model(table, CLASSIFIER, rivals)


def _by_model(table: pd.DataFrame, ours: str, rivals: list[str]) -> str:
    cells = []
    for rival in rivals:
        row = [rival]
        for model in (*UNSEEN_MODELS, None):
            each = table if model is None else table[table.model == model]
            losses = by_set(each)
            row.append(percent_change((losses[ours] / losses[rival]).to_numpy()))
        cells.append(row)
    return markdown(["ours over", *UNSEEN_MODELS, "all models"], cells)


def over_mcgrad(folder: Path, first: int = 0) -> pd.DataFrame:
    """The log loss of `SubgroupCalibrator` over mcgrad's, by set, for each model and for all."""
    table = lines(folder, "unseen_subgroups", first=first)
    losses = table.groupby(["set", "model", "method"], sort=False).log_loss.mean().unstack()
    ratios = (losses["SubgroupCalibrator"] / losses["mcgrad"]).unstack()
    pooled = losses.groupby("set", sort=False).mean()
    ratios["all models"] = pooled["SubgroupCalibrator"] / pooled["mcgrad"]
    others = losses[losses.index.get_level_values("model") != "forest"]
    pooled = others.groupby("set", sort=False).mean()
    ratios["without forests"] = pooled["SubgroupCalibrator"] / pooled["mcgrad"]
    return ratios[[*UNSEEN_MODELS, "all models", "without forests"]]


def unseen_subgroups(folder: Path) -> str:
    """`SubgroupCalibrator` beside mcgrad, on sets with sex, age or race among the attributes."""
    table = read(folder, "unseen_subgroups")
    ratios = over_mcgrad(folder)
    cells = []
    for name, each in ratios.iterrows():
        ours = table[(table.set == name) & (table.method == "SubgroupCalibrator")]
        theirs = table[(table.set == name) & (table.method == "mcgrad")]
        cells.append(
            [
                str(name),
                f"{ours.rows.iloc[0]:,}",
                *(f"{ratio:.4f}" for ratio in each),
                f"{np.ceil(1e3 * ours.epsilon.mean()) / 1e3:.3f}",
                f"{ours.seconds.median() / theirs.seconds.median():.1f}",
            ]
        )
    header = ["log loss over mcgrad's", "rows", *ratios.columns, "epsilon", "time over mcgrad's"]
    return markdown(header, cells)


def unseen_criteria(folder: Path) -> str:
    """What was fixed before the run, and what came out: in all splits, and in the new ones."""
    every, new = criteria(folder), criteria(folder, FIRST_NEW_SPLIT)
    cells = [[name, *every[name], *new[name]] for name in every]
    cells += [[name, *found, "", ""] for name, found in sizes_criteria(folder).items()]
    header = ["criterion", "all splits", "found", "new splits alone", "found"]
    return markdown(header, cells)


def criteria(folder: Path, first: int = 0) -> dict[str, tuple[str, str]]:
    """Whether each criterion is met in the splits from the `first` on, and what was found."""
    draws = lines(folder, "unseen_guarantees", first=first)
    draws = draws[draws.method == DEFAULT]
    kept = [
        share(int(each.broken.sum()), len(each))[1] <= NOMINAL for _, each in draws.groupby("n")
    ]
    losses = by_set(compared_unseen(folder, first))
    sigmoid = (losses[DEFAULT] / losses[SIGMOID]).to_numpy()
    whole = classifiers(folder, first)
    below = 0
    for model in UNSEEN_MODELS:
        each = by_set(whole[whole.model == model])
        below += median_limits((each[CLASSIFIER] / each[SIGMOID]).to_numpy() - 1)[2] < 0
    ratios = over_mcgrad(folder, first)
    met = (ratios["all models"] <= 1.001).sum()
    others = (ratios["without forests"] <= 1.001).sum()
    kinds = len(UNSEEN_MODELS)
    return {
        "guarantees hold at each n": (
            _verdict(all(kept)),
            f"{sum(kept)} of {len(kept)} sizes",
        ),
        "default curve better than scikit-learn's sigmoid": (
            _verdict(median_limits(sigmoid - 1)[2] < 0),
            percent_change(sigmoid),
        ),
        "`CalibratedClassifier` better than scikit-learn's default, for each kind of model": (
            _verdict(below == kinds),
            f"{below} of {kinds} kinds",
        ),
        "`SubgroupCalibrator` at most 1.001 times mcgrad's log loss on each set": (
            _verdict(met == len(ratios)),
            f"{met} of {len(ratios)} sets; without forests, {others} of {len(ratios)}",
        ),
    }


def _verdict(met: bool) -> str:
    return "met" if met else "**missed**"


def unseen_large(folder: Path) -> str:
    """Many rows of a real table."""
    cells = [
        [
            each.model,
            f"{each.n:,}",
            f"{each.seconds:.2f} s",
            f"{each.regions}",
            f"{np.ceil(1e4 * each.epsilon) / 1e4:.4f}",
            f"{each.oracle:.4f}",
            f"{each.epsilon / each.oracle:.2f}",
            "yes" if each.broken else "no",
        ]
        for each in read(folder, "unseen_large").itertuples()
    ]
    header = ["model", "rows", "processor time", "regions", "epsilon", "oracle", "ratio", "broken"]
    return markdown(header, cells)


def unseen_monitors(folder: Path) -> str:
    """Alarms by number of labels, for rows as in calibration and after a change, by level."""
    table = read(folder, "unseen_monitors")
    cells = []
    for level, each in table.groupby("level"):
        mixed, real = each[~each.changed], each[each.changed]
        warned = [f"{(real.labels <= n).mean():.0%}" for n in (500, 1_000, 2_000, 3_000)]
        false = shown(mixed.labels.notna().sum(), len(mixed))
        cells.append([f"{level:.0%}", f"{false[0]} ({false[2]})", *warned])
    header = ["confidence", "false alarms in 3,000 labels (95% limits)"]
    return markdown([*header, *(f"warned after {n:,}" for n in (500, 1_000, 2_000, 3_000))], cells)


def by_kind(table: pd.DataFrame, ours: str) -> str:
    """Ours over scikit-learn's sigmoid, for each kind of model, in a sentence."""
    said = []
    for model in UNSEEN_MODELS:
        losses = by_set(table[table.model == model])
        said.append(f"{model} {percent_change((losses[ours] / losses[SIGMOID]).to_numpy())}")
    return "; ".join(said)


def refuted_nowhere(folder: Path) -> tuple[pd.DataFrame, pd.Series]:
    """The splits by time or site in which no guarantee was refuted, and which alarms of `check`
    there are about rates.
    """
    order = read(folder, "order").fillna({"causes": ""})
    fine = order[~order.shuffled & (order.distance <= 0)]
    return fine, fine.causes.str.contains("labels")


def alarms(folder: Path) -> str:
    """Alarms of `check` where no guarantee was refuted: about rates, or about scores only."""
    fine, about_rates = refuted_nowhere(folder)
    cells = [
        ["the rates changed (or they and the scores)", f"{(fine.check & about_rates).sum()}"],
        ["only the scores changed", f"{(fine.check & ~about_rates).sum()}"],
        ["no alarm", f"{(~fine.check).sum()}"],
    ]
    return markdown([f"what `check` says, {len(fine)} splits", "splits"], cells)


def behind_the_best(folder: Path) -> pd.DataFrame:
    """For each set and model: the default's log loss over the best rival's, which is chosen in
    hindsight, minus 1; and the number of rows that calibrate.
    """
    table = compared_unseen(folder)
    table = table[~table.method.isin(["calibrant binning", "raw score"])]
    cells = table.groupby(["set", "model", "method"]).log_loss.mean().unstack()
    rows = table.groupby(["set", "model"]).rows.first()
    excess = cells[DEFAULT] / cells.drop(columns=DEFAULT).min(axis=1) - 1
    return pd.DataFrame({"excess": excess, "rows": rows}).reset_index()


def behind_figures(folder: Path) -> dict[str, str]:
    """Where rivals win."""
    cells = behind_the_best(folder)
    behind = cells[cells.excess > 0.02]
    worst = behind.groupby("set").excess.mean().nlargest(5).index
    few = cells[cells.rows < FEW_ROWS]
    return {
        "rival_better": f"{(cells.excess > 0).sum()} of {len(cells)}",
        "rival_better_a_little": f"{((cells.excess > 0) & (cells.excess <= 0.01)).sum()}",
        "behind": f"{len(behind)}",
        "behind_sets": ", ".join(f"*{name}*" for name in worst),
        "few_rows": f"{few.excess.max():.1%}",
    }


def unseen_figures(folder: Path) -> dict[str, str]:
    """Figures that stand in sentences."""
    table = compared_unseen(folder)
    losses = by_set(table)
    sigmoid = losses[DEFAULT] / losses[SIGMOID]
    whole = classifiers(folder)
    ours = by_set(whole)
    dropin = ours[CLASSIFIER] / ours[SIGMOID]
    draws = read(folder, "unseen_guarantees")
    draws = draws[draws.method == DEFAULT]
    ranks = mean_ranks(losses)
    fine, about_rates = refuted_nowhere(folder)
    return {
        "unseen_sets": f"{losses.shape[0]}",
        "unseen_splits": f"{table.split.nunique()}",
        "unseen_classifier_splits": f"{whole.split.nunique()}",
        "unseen_guarantee_splits": f"{draws.split.nunique()}",
        "unseen_draws": f"{len(draws):,}",
        "unseen_sigmoid": by_kind(table, DEFAULT),
        "unseen_sigmoid_better": f"{(sigmoid < 1).sum()} of {len(sigmoid)}",
        "unseen_dropin": by_kind(whole, CLASSIFIER),
        "unseen_dropin_better": f"{(dropin < 1).sum()} of {len(dropin)}",
        "unseen_best": ranks.index[0],
        "unseen_rank": f"{list(ranks.index).index(DEFAULT) + 1} of {len(ranks)}",
        "unseen_broken": f"{draws.broken.mean():.1%}",
        "alarms_others": f"{fine.check.sum()} of {len(fine)}",
        "alarms_rates": f"{(fine.check & about_rates).sum()}",
        "alarms_scores": f"{(fine.check & ~about_rates).sum()}",
        "unseen_allowed": f"{NOMINAL:.0%}",
        **behind_figures(folder),
    }
