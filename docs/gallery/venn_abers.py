"""Venn-Abers: two probabilities for one row

Venn-Abers gives a pair of probabilities: one from a fit in which the new row is negative, and one
from a fit in which it's positive. The gap between them shows how much one more row can change the
fit, and it shrinks as you add rows.

Picture: Pairs of curves against the score for 50 and for 2,000 flights; the gap between the curves
is much smaller for 2,000.
"""

import matplotlib.pyplot as plt
import numpy as np
from realdata import scored_flights
from sklearn.ensemble import RandomForestClassifier

from calibrant import VennAbersCalibrator

plt.style.use("calibrant.draw.plain")

flights = scored_flights(RandomForestClassifier(random_state=0))
flights = flights.sample(frac=1.0, random_state=3)
grid = np.linspace(0.01, 0.99, 500)

figure, panels = plt.subplots(1, 2, figsize=(8.0, 4.0), sharey=True)
for axes, n_rows in zip(panels, (50, 2_000), strict=True):
    known = flights[:n_rows]
    calibrator = VennAbersCalibrator().fit(known["score"], known["late"])
    lower, upper = calibrator.predict_multiprobability(grid).T
    axes.plot([0, 1], [0, 1], "--", color="0.6", linewidth=1)
    axes.fill_between(grid, lower, upper, alpha=0.4, linewidth=0)
    axes.set(title=f"{n_rows:,} flights", xlabel="score", ylim=(0, 1))
panels[0].set_ylabel("probability of being late")

plt.show()
