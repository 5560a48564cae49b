"""A smooth curve with a guarantee

`AnchoredCalibrator` predicts a curve that keeps the ranking, where bins predict steps. What is
proved is the average of the curve in each region, drawn as a band.

Picture: A smooth rising curve through the guaranteed intervals of the regions, and the true rate, a
dotted line, close to it.
"""

import matplotlib.pyplot as plt
import numpy as np

from calibrant import AnchoredCalibrator

rng = np.random.default_rng(0)
scores = rng.uniform(size=5_000)
y = rng.uniform(size=5_000) < scores**2

calibrator = AnchoredCalibrator().fit(scores, y)
grid = np.linspace(0.001, 0.999, 400)
lower, upper = calibrator.predict_rate_interval(grid).T
figure, axes = plt.subplots(figsize=(6, 4.5), layout="constrained")
axes.fill_between(grid, lower, upper, step="mid", alpha=0.25, label="rate of the region, 90 %")
axes.plot(grid, calibrator.predict(grid), label="predicted")
axes.plot(grid, grid**2, ":", color="black", label="true rate")
axes.set(xlabel="score", ylabel="rate")
axes.legend(frameon=False)

plt.show()
