"""Is my model calibrated?

Naive Bayes counts the same evidence many times, so its scores are too extreme. Each mark is a bin of new rows, and its
interval is exact: where it misses the dashed line, the score is proved wrong.

Picture: Rates of bins; their exact intervals lie above the diagonal at low scores and below it at high scores.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

from calibrant import ReliabilityDisplay

X, digit = load_digits(return_X_y=True)
X_train, X_new, y_train, y_new = train_test_split(X, digit == 8, test_size=0.6, random_state=0)
scores = GaussianNB().fit(X_train, y_train).predict_proba(X_new)[:, 1]

ReliabilityDisplay.from_predictions(y_new, scores, name="naive Bayes")
plt.show()
