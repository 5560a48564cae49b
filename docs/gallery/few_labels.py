"""Estimate a rate from a few labels

A model, the judge, scores every flight at departure, and a person looks up the outcomes of a few
hundred flights, drawn at random. `rate` combines the scores and the labels. Its limits are valid
for any judge. A good judge makes them narrower, and a useless one hardly makes them wider.

Picture: Intervals for the share of late flights against the number of labels: they are narrower
with the judge than with labels alone, and all of them contain the true share.
"""

import matplotlib.pyplot as plt
import numpy as np
from realdata import scored_flights
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from calibrant import rate

plt.style.use("calibrant.draw.plain")

model = make_pipeline(StandardScaler(), LogisticRegression())
flights = scored_flights(model, ["hour", "distance", "month", "dep_delay"])
checked = np.random.default_rng(0).permutation(len(flights))  # in random order

sizes = [50, 100, 200, 400, 800]
figure, axes = plt.subplots()
for shift, method, color in ((-0.12, "labels", "0.6"), (0.12, "auto", "C0")):
    limits = []
    for n in sizes:
        labels = np.full(len(flights), np.nan)
        labels[checked[:n]] = flights["late"].to_numpy()[checked[:n]]
        found = rate(labels, flights["score"], method=method)
        limits.append((found.lower, found.upper))
    lower, upper = np.transpose(limits)
    name = "labels alone" if method == "labels" else "labels and judge"
    axes.vlines(np.arange(5) + shift, lower, upper, color, linewidth=9, alpha=0.6, label=name)
axes.axhline(flights["late"].mean(), color="C1", linestyle="--", label="all flights")
axes.set(xlabel="labels", ylabel="share of late flights", xticks=range(5), xticklabels=sizes)
axes.legend()

plt.show()
