"""Few bins or many?

More bins follow the rate more closely, and each has fewer rows to prove something with. The band
shows the price: it widens as bins get narrower.

Picture: Three panels with 3, 10 and 30 bins of the same rows: steps become finer and the guaranteed
band wider.
"""

import matplotlib.pyplot as plt
import numpy as np

from calibrant import BinningCalibrator, ReliabilityDisplay

rng = np.random.default_rng(0)
scores = rng.uniform(size=3_000)
y = rng.uniform(size=3_000) < scores**2

figure, panels = plt.subplots(1, 3, figsize=(12, 4.2), layout="constrained", sharey=True)
for axes, n_bins in zip(panels, (3, 10, 30), strict=True):
    calibrator = BinningCalibrator(n_bins=n_bins).fit(scores, y)
    ReliabilityDisplay.from_calibrator(calibrator, ax=axes).ax_.get_legend().remove()
    rounded_up = np.ceil(100 * calibrator.guarantee_.epsilon) / 100
    axes.set_title(f"{n_bins} bins: epsilon {rounded_up:.2f}")

plt.show()
