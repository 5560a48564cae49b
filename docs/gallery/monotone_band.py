"""Monotone band: the rate at one score

If the rate doesn't fall as the score rises, you get limits at every single score. Without that
assumption, you can only bound averages over bins.

Picture: A band that rises with the score and contains the bins' rates, shown with their intervals.
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

display = ReliabilityDisplay.from_predictions(y_new, scores, n_bins=5, monotone=True, name="bins")
display.ax_.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), fontsize="small")

plt.show()
