"""The demo's clients, its model of who defaults on a credit card next month, and its picture.

The clients are from "Default of Credit Card Clients" (I-Cheng Yeh, UCI Machine Learning Repository,
2016, https://doi.org/10.24432/C55S3H, CC BY 4.0): 30,000 clients of a bank in Taiwan in October
2005, one row each. Fourteen of its columns are kept, codes are words, and rows are in random order:
in the order of the original's id the scores drift, and nothing says what that order means.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant._optional import needed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from calibrant import Calibrator

OUTCOME = "outcome"
DEFAULT = "default"
SOURCE = "Default of Credit Card Clients, I-Cheng Yeh, UCI repository (CC BY 4.0)"
N_TRAIN = 9_000
N_CALIBRATE = 12_000
N_TREES = 300
_WORDS = ["sex", "education", "marriage"]
_FEATURES = [
    "limit",
    *_WORDS,
    "age",
    *(f"delay_{month}" for month in range(1, 7)),
    "bill_1",
    "paid_1",
    "paid_2",
]
_BINS_BEFORE = 12


def load_cards() -> Any:
    """All clients, in random order."""
    pd = needed("pandas", "cli", "the demo's clients are read")
    return pd.read_csv(
        Path(__file__).with_name("cards.csv.gz"), dtype=dict.fromkeys(_WORDS, "category")
    )


def scored_cards(cards: Any) -> tuple[Any, Any]:
    """The clients to calibrate on and those that nothing has seen, scored by a model that was
    trained on the others.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # of scikit-learn

    train = cards.iloc[:N_TRAIN]
    model = HistGradientBoostingClassifier(
        max_iter=N_TREES, categorical_features="from_dtype", random_state=0
    )
    with threadpool_limits(1):  # on a busy machine, several threads wait for each other for long
        model.fit(train[_FEATURES], train[OUTCOME])
    others = cards.iloc[N_TRAIN:]
    column = list(model.classes_).index(DEFAULT)
    scores = model.predict_proba(others[_FEATURES])[:, column]
    shown = others[["age", *_WORDS]].assign(score=scores, outcome=others[OUTCOME])
    return shown.iloc[:N_CALIBRATE], shown.iloc[N_CALIBRATE:]


def before_and_after(calibrator: "Calibrator", unseen: Any) -> "Figure":
    """Two diagrams of clients that nothing has seen: the model's probabilities, and the calibrated
    ones within their guarantee.
    """
    import numpy as np
    from matplotlib.figure import Figure

    from calibrant.assess.metrics.reliability import reliability_table
    from calibrant.draw.axes import in_per_cent
    from calibrant.draw.diagram import without_frame

    guarantee = calibrator.guarantee_
    level = guarantee.confidence_level
    figure = Figure(figsize=(10.4, 5.4), layout="constrained")
    before, after = figure.subplots(1, 2, sharey=True)
    asked: dict[str, Any] = {"pos_label": DEFAULT, "confidence_level": level}
    model = reliability_table(unseen[OUTCOME], unseen["score"], n_bins=_BINS_BEFORE, **asked)
    predicted = calibrator.predict(unseen["score"])
    kept = reliability_table(
        unseen[OUTCOME], unseen["score"], partition=calibrator.partition_, **asked
    )
    region = calibrator.partition_.assign(unseen["score"])
    average = np.bincount(region, predicted, kept.rate.size) / kept.counts
    everywhere = np.array([0.0, 1.0])
    band = np.append(average, everywhere)
    order = np.argsort(band)
    epsilon = guarantee.epsilon
    after.fill_between(
        band[order],
        band[order] - epsilon,
        band[order] + epsilon,
        color="#0072B2",
        alpha=0.18,
        linewidth=0,
        label=f"guaranteed: within {100 * epsilon:.1f} points",
    )
    _dots(before, model.mean_score, model)
    _dots(after, average, kept)
    before.set(xlabel="model's probability of default", ylabel="default rate")
    worst = np.abs(model.rate - model.mean_score).argmax()
    most = 100 * float(abs(model.rate[worst] - model.mean_score[worst]))
    before.set_title(f"Before: off by up to {most:.0f} points", loc="left", weight="bold")
    ends = np.array([model.rate[worst], model.mean_score[worst]])
    before.plot([ends[1]] * 2, ends, color="0.5", linewidth=1.2, zorder=1)
    before.text(ends[1] - 0.015, ends[0] - 0.03, f"{most:.0f} points", ha="right", color="0.3")
    after.set_xlabel("calibrated probability of default")
    within = f"After: guaranteed within {100 * epsilon:.1f} points"
    after.set_title(within, loc="left", weight="bold")
    end = np.ceil(10 * max(model.mean_score.max(), model.upper.max())) / 10
    for ax in (before, after):
        ax.plot(everywhere, everywhere, color="0.5", linewidth=1, linestyle=(0, (4, 3)))
        ax.set(xlim=(0.0, end), ylim=(0.0, end), aspect="equal")
        in_per_cent(ax.xaxis)
        in_per_cent(ax.yaxis)
        without_frame(ax)
        ax.legend(frameon=False, loc="upper left")
    return figure


def _dots(ax: Any, x: Any, table: Any) -> None:
    """Observed rates of clients, with exact limits."""
    ax.errorbar(
        x,
        table.rate,
        yerr=[table.rate - table.lower, table.upper - table.rate],
        fmt="o",
        color="#D55E00",
        markersize=5,
        linewidth=1.2,
        label="9,000 new clients, with exact limits",
    )
