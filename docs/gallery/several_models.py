"""Several models in one diagram

Naive Bayes is overconfident, and a forest of shallow trees is underconfident. The intervals hold
simultaneously for both models, so you can compare them.

Picture: Two models in one reliability diagram: naive Bayes is flatter than the diagonal, the forest
is steeper.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import BernoulliNB

from calibrant import ReliabilityDisplay

plt.style.use("calibrant.draw.plain")

X, digit = load_digits(return_X_y=True)
X_train, X_new, y_train, y_new = train_test_split(X, digit % 2 == 0, test_size=0.6, random_state=0)
forest = RandomForestClassifier(30, max_depth=3, random_state=0).fit(X_train, y_train)
scores = forest.predict_proba(X_new)[:, 1]
bayes = BernoulliNB(binarize=8).fit(X_train, y_train)
models = {"forest": scores, "naive Bayes": bayes.predict_proba(X_new)[:, 1]}

ReliabilityDisplay.from_predictions(y_new, models, n_bins=8)

plt.show()
