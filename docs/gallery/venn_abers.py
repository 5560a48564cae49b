"""Two probabilities for one row

Venn-Abers gives a pair: the probability if the row is negative, and if it is positive. Their
distance says how much one more row can change the fit; it shrinks as rows are added.

Picture: Pairs of curves over the score for 50 and for 1,000 rows; the gap between the curves is
much smaller for 1,000.
"""

import matplotlib.pyplot as plt
import numpy as np

from calibrant import VennAbersCalibrator

rng = np.random.default_rng(0)
scores = rng.uniform(size=1_000)
y = rng.uniform(size=1_000) < scores**2
grid = np.linspace(0.01, 0.99, 300)

figure, panels = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained", sharey=True)
for axes, n_rows in zip(panels, (50, 1_000), strict=True):
    calibrator = VennAbersCalibrator().fit(scores[:n_rows], y[:n_rows])
    lower, upper = calibrator.predict_multiprobability(grid).T
    axes.fill_between(grid, lower, upper, alpha=0.4)
    axes.plot(grid, grid**2, ":", color="black")
    axes.set(title=f"{n_rows:,} rows", xlabel="score", ylabel="probability")

plt.show()
