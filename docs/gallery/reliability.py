"""Is my model calibrated?

A random forest predicts whether a handwritten digit is even. It averages the votes of shallow
trees, so its scores are underconfident. Each dot is the observed rate in a bin of new rows, with an
exact interval. If the interval misses the dashed line, the scores in that bin are proved to be off.

Picture: Rates and intervals for bins of the score; they lie below the diagonal at low scores, and
above it at high scores.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from calibrant import ReliabilityDisplay

plt.style.use("calibrant.draw.plain")

X, digit = load_digits(return_X_y=True)
X_train, X_new, y_train, y_new = train_test_split(X, digit % 2 == 0, test_size=0.6, random_state=0)
forest = RandomForestClassifier(30, max_depth=3, random_state=0).fit(X_train, y_train)
scores = forest.predict_proba(X_new)[:, 1]

ReliabilityDisplay.from_predictions(y_new, scores, name="forest")

plt.show()
