"""Conformal prediction sets

If rows are exchangeable, a conformal set contains a new row's label with probability at least 95%.
The set contains one label if the score clearly favours it, and both labels otherwise.

Picture: A stacked histogram of the scores of flights whose set is "on time", both labels, or
"late".
"""

import matplotlib.pyplot as plt
import numpy as np
from realdata import scored_flights
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from calibrant.tripod import ConformalSets

plt.style.use("calibrant.draw.plain")

model = make_pipeline(StandardScaler(), LogisticRegression())
flights = scored_flights(model, ["hour", "distance", "month", "dep_delay"])
flights = flights.sample(frac=1.0, random_state=0)
known, new = flights[:4_000], flights[4_000:]

sets = ConformalSets().fit(known["score"], known["late"]).predict_set(new["score"], coverage=0.95)
covered = sets[np.arange(len(new)), new["late"].astype(int)].mean()
kind = np.where(sets.all(axis=1), 1, np.where(sets[:, 1], 2, 0))

figure, axes = plt.subplots(figsize=(6.4, 4.0))
parts = [new["score"][kind == number] for number in range(3)]
labels = ["on time", "cannot tell", "late"]
axes.hist(parts, bins=40, stacked=True, label=labels, color=["C0", "0.7", "C1"])
axes.set(xlabel="score", ylabel="flights", yscale="log")
axes.set_title(f"the set contains the label of {covered:.1%} of new flights")
axes.legend()

plt.show()
