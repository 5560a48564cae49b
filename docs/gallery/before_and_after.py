"""Before and after calibration

A random forest predicts whether a handwritten digit is even. It's underconfident, as the left panel
shows. We fit the calibrator to half of the rows that the forest wasn't trained on. In the right
panel, the rates in the other half lie within the guaranteed intervals or at their edges.

Picture: On the left, a forest's rates, below the diagonal at low scores and above it at high
scores. On the right, the guaranteed intervals for five bins, and the rates in new rows.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from calibrant import BinningCalibrator, ReliabilityDisplay

plt.style.use("calibrant.draw.plain")

X, digit = load_digits(return_X_y=True)
X_train, X_new, y_train, y_new = train_test_split(X, digit % 2 == 0, test_size=0.6, random_state=0)
forest = RandomForestClassifier(30, max_depth=3, random_state=0).fit(X_train, y_train)
scores = forest.predict_proba(X_new)[:, 1]
half = len(scores) // 2
calibrator = BinningCalibrator(n_bins=5).fit(scores[:half], y_new[:half])

figure, axes = plt.subplots(1, 2, figsize=(8.8, 4.8))
ReliabilityDisplay.from_predictions(y_new[half:], scores[half:], name="forest", ax=axes[0])
ReliabilityDisplay.from_calibrator(
    calibrator, y_new[half:], scores[half:], name="new rows", ax=axes[1]
)

plt.show()
