"""A curve with a guarantee

The default calibrator fits a curve that keeps the ranking of the scores. The guarantee is
about the average in each region: with 90% confidence, if rows are i.i.d., every band contains the
true rate in its region.

Picture: The scores of an overfitted model, which are far too extreme, and a calibrated curve without
jumps inside its guaranteed bands. The rates in held-out flights lie close to the curve.
"""

import matplotlib.pyplot as plt
import numpy as np
from realdata import scored_flights
from sklearn.ensemble import HistGradientBoostingClassifier

from calibrant import Calibrator

plt.style.use("calibrant.draw.plain")

model = HistGradientBoostingClassifier(max_iter=300, random_state=0)
flights = scored_flights(model, ["hour", "distance", "month", "day"])
flights = flights.sample(frac=1.0, random_state=1)
known, new = flights[:8_000], flights[8_000:].sort_values("score")

calibrator = Calibrator().fit(known["score"], known["late"])
scores = new["score"].to_numpy()
lower, upper = calibrator.predict_rate_interval(scores).T
percent = np.linspace(0, 100, len(new))
held_out = [part.mean() for part in np.array_split(new["late"].to_numpy(float), 20)]

figure, axes = plt.subplots()
axes.plot(percent, scores, "--", color="0.5", label="model score")
axes.fill_between(
    percent, lower, upper, alpha=0.2, linewidth=0, label="true rate in the region, 90%"
)
axes.plot(percent, calibrator.predict(scores), label="calibrated probability")
axes.plot(np.arange(2.5, 100, 5), held_out, "o", color="C1", label="held-out flights")
axes.set(xlabel="flights in the order of their scores, %", ylabel="share of late flights")
axes.set_ylim(0, 1)
axes.legend(loc="upper left")

plt.show()
