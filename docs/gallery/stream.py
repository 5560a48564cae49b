"""Watch a stream, stop when you like

The interval of a confidence sequence holds after every label, so you may look all the time and stop
when it is narrow enough. An ordinary interval is made for one look.

Picture: An interval that narrows around the true rate as labels arrive, drawn over the number of
labels.
"""

import matplotlib.pyplot as plt
import numpy as np

from calibrant import OnlineCalibrator, Partition

rng = np.random.default_rng(3)
online = OnlineCalibrator(Partition.fixed_width(1), confidence_level=0.9)
labels, lower, upper = [], [], []
for _ in range(150):
    scores = rng.uniform(size=10)
    online.partial_fit(scores, rng.uniform(size=10) < 0.3)
    guarantee = online.guarantee_
    labels.append(online.tally_.n_rows)
    lower.append(guarantee.lower[0])
    upper.append(guarantee.upper[0])

figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
axes.fill_between(labels, lower, upper, alpha=0.3, label="90 %, at all times at once")
axes.axhline(0.3, color="black", linestyle=":", label="true rate")
axes.set(xlabel="labels", ylabel="rate", ylim=(0, 0.8))
axes.legend(frameon=False)

plt.show()
