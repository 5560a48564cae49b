"""Which model is better?

Models are compared row by row, on the same new rows. The intervals hold for all pairs at once and
for every distribution: where one does not contain zero, one model is proved better.

Picture: Intervals for the differences in Brier score of six pairs of models, some of them on one
side of the line at zero.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from calibrant import compare_models

X, digit = load_digits(return_X_y=True)
X_train, X_new, y_train, y_new = train_test_split(X, digit == 8, test_size=0.6, random_state=0)
models = {
    "naive Bayes": GaussianNB(),
    "tree": DecisionTreeClassifier(max_depth=5, random_state=0),
    "logistic": LogisticRegression(max_iter=5_000),
    "forest": RandomForestClassifier(50, random_state=0),
}
scores = {
    name: model.fit(X_train, y_train).predict_proba(X_new)[:, 1] for name, model in models.items()
}
found = [one for one in compare_models(y_new, scores).differences if one.measure == "Brier score"]

names = [f"{one.first} - {one.second}" for one in found]
colors = ["#d95f02" if one.better else "#7f7f7f" for one in found]
figure, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
ax.hlines(names, [one.lower for one in found], [one.upper for one in found], colors, linewidth=6)
ax.axvline(0, color="grey", linestyle="--")
ax.set_xlabel("difference in Brier score; orange: proved")

plt.show()
