"""Which model is better?

`compare_models` compares models row by row, on the same new rows. The intervals hold simultaneously
for all pairs, if rows are i.i.d. An interval that excludes zero proves which of the two is better.

Picture: Intervals for the differences in Brier score between six pairs of models; the ones that
exclude zero are coloured and name the better model.
"""

import matplotlib.pyplot as plt
from realdata import scored_flights
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from calibrant import compare_models

plt.style.use("calibrant.draw.plain")

models = {
    "naive Bayes": GaussianNB(),
    "forest": RandomForestClassifier(random_state=0),
    "logistic": make_pipeline(StandardScaler(), LogisticRegression()),
    "boosting": HistGradientBoostingClassifier(max_iter=30, random_state=0),
}
scored = {name: scored_flights(model, n=8_000) for name, model in models.items()}
late = scored["forest"]["late"]
scores = {name: flights["score"] for name, flights in scored.items()}
found = [one for one in compare_models(late, scores).differences if one.measure == "Brier score"]

figure, axes = plt.subplots(figsize=(6.8, 4.2))
for place, one in enumerate(found):
    color = "C0" if one.better else "0.6"
    axes.hlines(place, one.lower, one.upper, color, linewidth=9, alpha=0.6)
    axes.text(one.upper, place, f"  {one.better or 'cannot tell'}", va="center", color=color)
axes.axvline(0, color="0.5", linestyle="--", linewidth=1)
axes.set_yticks(range(len(found)), [f"{one.first} minus {one.second}" for one in found])
axes.set(xlabel="difference in Brier score, and the better model", xlim=(-0.06, 0.1))

plt.show()
