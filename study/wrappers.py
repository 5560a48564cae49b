"""What pages quote on CalibratedClassifier beside scikit-learn's, from the file of its part."""

from pathlib import Path

import pandas as pd
from drop_in import CHOSEN_ON
from quoting import markdown

KINDS = {"logistic": "logistic regression", "lightgbm": "boosting", "forest": "random forest"}
LOSS = "log loss, %"
RATIO = "epsilon over one model's"
FEW_ROWS = 1_500


def wrapper(folder: Path) -> str:
    """Medians over all sets, for each model and for all."""
    found = pd.read_csv(folder / "wrapper.csv")
    parts = {name: found[found.model == kind] for kind, name in KINDS.items()} | {"all": found}
    lines = []
    for what, column, form in (
        ("log loss relative to scikit-learn's default, sigmoid", LOSS, "{:+.2f}%"),
        (
            "log loss relative to the better of sigmoid and isotonic",
            "log loss against the better, %",
            "{:+.2f}%",
        ),
        ("difference in AUC", "AUC", "{:+.4f}"),
        ("epsilon", "epsilon", "{:.3f}"),
        ("epsilon divided by that of one model", RATIO, "{:.2f}"),
        ("time to fit", "fit", "{:.2f}"),
        ("time to predict", "predict", "{:.2f}"),
        ("pickled size", "size", "{:.2f}"),
    ):
        lines.append([what, *(form.format(part[column].median()) for part in parts.values())])
    behind = [f"{(part[LOSS] > 1.0).mean():.0%}" for part in parts.values()]
    ahead = [f"{(part[LOSS] < 0.0).mean():.0%}" for part in parts.values()]
    lines.insert(1, ["sets on which our log loss is smaller", *ahead])
    lines.insert(2, ["sets on which ours is more than 1% larger", *behind])
    return markdown(["median, or share of sets", *parts], lines)


def wrapper_figures(folder: Path) -> dict[str, str]:
    """Single figures, which stand in sentences."""
    found = pd.read_csv(folder / "wrapper.csv")
    behind = found[LOSS] > 1.0
    is_small = found.rows < FEW_ROWS
    ratio = found[RATIO]
    worst = found.nlargest(3, LOSS)
    fresh = found[~found.set.isin(CHOSEN_ON)]
    named = [
        f"*{each.set}* ({each[LOSS]:+.1f}%, {KINDS[each.model]})" for _, each in worst.iterrows()
    ]
    return {
        "wrapper_smaller": f"{(found[LOSS] < 0.0).mean():.0%}",
        "wrapper_boosting": f"{found[found.model == 'lightgbm'][LOSS].median():.1f}%",
        "wrapper_few": f"{behind[is_small].mean():.0%}",
        "wrapper_many": f"{behind[~is_small].mean():.0%}",
        "wrapper_worst": f"{', '.join(named[:-1])} and {named[-1]}",
        "wrapper_wide": f"{(ratio > 1.3).sum()} of {len(found)}",
        "wrapper_widest": f"{ratio.max():.1f}",
        "wrapper_fresh_sets": f"{fresh.set.nunique()}",
        "wrapper_fresh": (
            f"{fresh[LOSS].median():+.2f}% in log loss and {fresh.AUC.median():+.4f} in AUC,"
            f" and the median ratio of epsilons is {fresh[RATIO].median():.2f}"
        ),
    }
