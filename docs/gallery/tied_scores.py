"""Scores with ties

A decision tree gives one score per leaf. Equal scores always stay in the same region, so each leaf
gets one calibrated probability.

Picture: The score of each leaf of a tree, with its calibrated probability and guaranteed interval.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

from calibrant import BinningCalibrator, ReliabilityDisplay

plt.style.use("calibrant.draw.plain")

X, digit = load_digits(return_X_y=True)
X_train, X_new, y_train, y_new = train_test_split(X, digit % 2 == 0, test_size=0.6, random_state=0)
tree = DecisionTreeClassifier(max_leaf_nodes=8, random_state=0).fit(X_train, y_train)
scores = tree.predict_proba(X_new)[:, 1]

calibrator = BinningCalibrator().fit(scores, y_new)
ReliabilityDisplay.from_calibrator(calibrator, y_new, scores, name="the same rows")

plt.show()
