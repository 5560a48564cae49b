"""A disease becomes more frequent

The test was calibrated where one in ten is ill; now three in ten are. If the disease looks the
same, Bayes' rule moves every probability, and the guarantee moves with it.

Picture: Two rising step curves with bands: calibrated at a share of 10 percent, and, higher, for 30
percent.
"""

import matplotlib.pyplot as plt
import numpy as np

from calibrant import BinningCalibrator, LabelShiftCalibrator

rng = np.random.default_rng(0)
ill = rng.uniform(size=20_000) < 0.1
test = rng.normal(2.0 * ill)

grid = np.linspace(-2, 4.5, 400)
figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
here = BinningCalibrator(8).fit(test, ill)
there = LabelShiftCalibrator(n_bins=8).fit(test, ill, target_prior=0.3)
for name, calibrator in (("10 % ill", here), ("30 % ill", there)):
    lower, upper = calibrator.predict_interval(grid).T
    axes.fill_between(grid, lower, upper, step="mid", alpha=0.25)
    axes.step(grid, calibrator.predict(grid), where="mid", label=name)
axes.set(xlabel="result of the test", ylabel="probability of being ill")
axes.legend(frameon=False)

plt.show()
