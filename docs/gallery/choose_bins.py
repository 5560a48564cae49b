"""Few bins or many?

With more bins, the predictions follow the true rate more closely. But each bin has fewer rows, so
its interval, shown as a band, is wider.

Picture: Three panels with 3, 10 and 30 bins for the same flights: the steps get finer and the
guaranteed band gets wider.
"""

import matplotlib.pyplot as plt
import numpy as np
from realdata import scored_flights
from sklearn.ensemble import HistGradientBoostingClassifier

from calibrant import BinningCalibrator

plt.style.use("calibrant.draw.plain")

model = HistGradientBoostingClassifier(max_iter=300, random_state=0)
flights = scored_flights(model, ["hour", "distance", "month", "day"], n=4_000)
grid = np.linspace(0, 1, 2_000)

figure, panels = plt.subplots(1, 3, figsize=(8.4, 3.6), sharey=True)
for axes, n_bins in zip(panels, (3, 10, 30), strict=True):
    calibrator = BinningCalibrator(n_bins=n_bins).fit(flights["score"], flights["late"])
    lower, upper = calibrator.predict_interval(grid).T
    axes.plot([0, 1], [0, 1], "--", color="0.6", linewidth=1)
    axes.fill_between(grid, lower, upper, alpha=0.25, linewidth=0)
    axes.plot(grid, calibrator.predict(grid))
    rounded_up = np.ceil(100 * calibrator.guarantee_.epsilon) / 100
    axes.set(title=f"{n_bins} bins: epsilon {rounded_up:.2f}", xlabel="score", ylim=(0, 1))
panels[0].set_ylabel("share of late flights")

plt.show()
