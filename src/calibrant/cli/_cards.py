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
    from calibrant.text.picture import Drawn

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
    from calibrant.text.picture import Drawn, Picture

    guarantee = calibrator.guarantee_
    y = unseen[OUTCOME]
    scores = unseen["score"]
    asked: dict[str, Any] = {"pos_label": DEFAULT, "confidence_level": guarantee.confidence_level}
    model = reliability_table(y, scores, n_bins=_BINS_BEFORE, **asked)
    kept = reliability_table(y, scores, partition=calibrator.partition_, **asked)
    region = calibrator.partition_.assign(scores)
    average = np.bincount(region, calibrator.predict(scores), kept.rate.size) / kept.counts
    worst = np.abs(model.gap).argmax()
    most = f"{100 * abs(model.gap[worst]):.0f} points"
    gap = [model.mean_score[worst], model.rate[worst]]
    within = f"within {100 * guarantee.epsilon:.1f} points"
    ends = [0.0, 1.0]
    low, high = ([end + side * guarantee.epsilon for end in ends] for side in (-1, 1))
    pictures = (
        Picture(
            f"Before: off by up to {most}",
            "",
            "model's probability of default",
            "default rate",
            (
                _dots(model.mean_score, model),
                Drawn(
                    f"largest difference: {most}", [gap[0], gap[0]], gap, kind="line", quiet=True
                ),
            ),
            is_square=True,
        ),
        Picture(
            f"After: guaranteed {within}",
            "",
            "calibrated probability of default",
            "",
            (
                _dots(average, kept),
                Drawn(f"guaranteed: {within}", ends, ends, low, high, kind="band", style=0),
            ),
            is_square=True,
        ),
    )
    figure = Figure(figsize=(10.4, 5.4), layout="constrained")
    end = np.ceil(10 * max(model.mean_score.max(), model.upper.max())) / 10
    for ax, picture in zip(figure.subplots(1, 2, sharey=True), pictures, strict=True):
        picture.plot(ax)
        ax.set(xlim=(0.0, end), ylim=(0.0, end), aspect="equal")
        ax.set_title("")
        ax.set_title(picture.title, loc="left", weight="bold")
    return figure


def _dots(x: Any, table: Any) -> "Drawn":
    """Observed rates of clients, with exact limits."""
    from calibrant.text.picture import Drawn

    name = "9,000 new clients, with exact limits"
    return Drawn(name, x, table.rate, table.lower, table.upper, style=1)
