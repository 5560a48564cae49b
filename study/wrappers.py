"""The table on CalibratedClassifier beside scikit-learn's, from the CSV file of its benchmark."""

from pathlib import Path

import pandas as pd
from quoting import markdown

KINDS = {"logistic": "logistic regression", "lightgbm": "boosting", "forest": "random forest"}
LOSS = "log loss, %"


def wrapper(folder: Path) -> str:
    """Medians over all sets, for each model and for all."""
    found = pd.read_csv(folder / "wrapper.csv")
    parts = {name: found[found.model == kind] for kind, name in KINDS.items()} | {"all": found}
    lines = []
    for what, column, form in (
        ("log loss relative to its default, sigmoid", LOSS, "{:+.2f}%"),
        (
            "log loss relative to the better of sigmoid and isotonic",
            "log loss against the better, %",
            "{:+.2f}%",
        ),
        ("difference in AUC", "AUC", "{:+.4f}"),
        ("epsilon", "epsilon", "{:.3f}"),
        ("epsilon over that of one model", "epsilon over one model's", "{:.2f}"),
        ("time to fit", "fit", "{:.2f}"),
        ("time to predict", "predict", "{:.2f}"),
        ("pickled size", "size", "{:.2f}"),
    ):
        lines.append([what, *(form.format(part[column].median()) for part in parts.values())])
    behind = [f"{(part[LOSS] > 1.0).mean():.0%}" for part in parts.values()]
    ahead = [f"{(part[LOSS] < 0.0).mean():.0%}" for part in parts.values()]
    lines.insert(1, ["sets with the smaller log loss", *ahead])
    lines.insert(2, ["sets more than 1% behind", *behind])
    return markdown(["median", *parts], lines)
