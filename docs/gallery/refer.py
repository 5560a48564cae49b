"""Act, leave alone, or refer

Two thresholds, proved at once: above one at least 90 % are ill, below the other at least 90 % are
healthy. The rows between them are for a person.

Picture: Histograms of the scores of healthy and ill patients, with a shaded middle strip between
two thresholds.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from calibrant import threshold

X, benign = load_breast_cancer(return_X_y=True)
X_train, X_new, y_train, y = train_test_split(X[:, :10], benign == 0, test_size=0.7, random_state=0)
model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X_train, y_train)
scores = model.predict_proba(X_new)[:, 1]

act, leave = threshold(y, scores, precision=0.9, npv=0.9).cuts
figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
axes.hist(
    [scores[~y], scores[y]],
    bins=30,
    stacked=True,
    label=["healthy", "ill"],
    color=["#7f7f7f", "#d95f02"],
)
low, high = sorted([act.threshold, leave.threshold])
axes.axvspan(low, high, alpha=0.2, label="refer to a person")
axes.set(xlabel="score", ylabel="patients")
axes.legend(frameon=False)

plt.show()
