"""Label shift: a disease becomes rarer

In the clinic where the data were collected, 37% of the tumours are malignant. Suppose that only 10%
are malignant in a screening programme. If malignant tumours look the same in both places, and
benign tumours do too, you can adjust every probability and its guaranteed limits by Bayes' rule.

Picture: Two rising step curves with bands against tumour radius: one for the clinic and a lower one
for screening.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

from calibrant import BinningCalibrator, LabelShiftCalibrator

plt.style.use("calibrant.draw.plain")

X, benign = load_breast_cancer(return_X_y=True)
radius = X[:, 20]
malignant = benign == 0

here = BinningCalibrator(3).fit(radius, malignant)
there = LabelShiftCalibrator(n_bins=3).fit(radius, malignant, target_prior=0.1)
grid = np.linspace(10, 24, 400)

figure, axes = plt.subplots()
for name, calibrator in (("clinic: 37% malignant", here), ("screening: 10%", there)):
    lower, upper = calibrator.predict_interval(grid).T
    axes.fill_between(grid, lower, upper, alpha=0.2, linewidth=0)
    axes.plot(grid, calibrator.predict(grid), label=name)
axes.set(
    xlabel="largest radius of the tumour, in pixels", ylabel="probability that it is malignant"
)
axes.legend(loc="upper left")

plt.show()
