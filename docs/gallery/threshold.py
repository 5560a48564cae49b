"""A threshold with a guaranteed precision

Suppose that at least 90% of the selected rows should be positive. calibrant finds the lowest
threshold at which a precision of 90% is guaranteed. The observed precision already reaches 90% at a
lower score, but that could be chance.

Picture: Observed precision against the threshold. A vertical line marks the threshold that
calibrant chooses, to the right of where the curve crosses 0.9.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from calibrant import threshold

plt.style.use("calibrant.draw.plain")

X, benign = load_breast_cancer(return_X_y=True)
X_train, X_new, y_train, y = train_test_split(X[:, :10], benign == 0, test_size=0.7, random_state=0)
model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X_train, y_train)
scores = model.predict_proba(X_new)[:, 1]

found = threshold(y, scores, precision=0.9)
cuts = np.linspace(0.01, 0.98, 98)
figure, axes = plt.subplots()
axes.plot(cuts, [y[scores >= cut].mean() for cut in cuts], label="observed precision")
axes.axhline(0.9, color="0.5", linestyle="--", label="target")
axes.axvline(found.threshold, color="C1", label=f"proved threshold: {found.threshold:.2f}")
axes.set(xlabel="threshold", ylabel="precision")
axes.legend()

plt.show()
