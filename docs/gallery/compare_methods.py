"""Which calibrator?

`compare_calibrators` measures each method's loss on rows it wasn't fitted to. Here the losses are
similar, but only the methods in blue come with a guarantee.

Picture: Bars with the Brier scores of four methods and the raw score; the raw score is worst, and
the methods are close together.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from calibrant import (
    BinningCalibrator,
    Calibrator,
    IsotonicCalibrator,
    PlattCalibrator,
    compare_calibrators,
)

plt.style.use("calibrant.draw.plain")

X, digit = load_digits(return_X_y=True)
X_train, X_new, y_train, y_new = train_test_split(X, digit % 2 == 0, test_size=0.6, random_state=0)
forest = RandomForestClassifier(30, max_depth=3, random_state=0).fit(X_train, y_train)
scores = forest.predict_proba(X_new)[:, 1]

methods = [PlattCalibrator(), IsotonicCalibrator(), BinningCalibrator(), Calibrator()]
found = compare_calibrators(y_new, scores, methods)
figure, axes = plt.subplots(figsize=(6.4, 4.0))
axes.barh(found.models, found.brier, color=np.where(np.isnan(found.epsilon), "0.8", "C0"))
axes.set_xlabel("Brier score on held-out rows; blue: with a guarantee")
axes.invert_yaxis()

plt.show()
