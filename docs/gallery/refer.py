"""Two thresholds: act, leave alone, or refer

If flights are i.i.d., then with 90% confidence, at least 85% of those above one threshold are late,
and at least 95% of those below the other are on time. Flights in between go to a person.

Picture: The share of late flights rises with the score. There are three zones: leave alone below
the lower threshold, act above the upper one, and refer in between.
"""

import matplotlib.pyplot as plt
import numpy as np
from realdata import scored_flights
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from calibrant import threshold

plt.style.use("calibrant.draw.plain")

model = make_pipeline(StandardScaler(), LogisticRegression())
flights = scored_flights(model, ["hour", "distance", "month", "dep_delay"])
late, scores = flights["late"].to_numpy(), flights["score"].to_numpy()

act, leave = threshold(late, scores, precision=0.85, npv=0.95).cuts
zones = {
    "leave alone": (0, leave.threshold, "C0"),
    "refer": (leave.threshold, act.threshold, "0.5"),
}
zones["act"] = (act.threshold, 1, "C1")

figure, axes = plt.subplots()
edges = np.linspace(0, 1, 31)
counts = [np.histogram(scores[late == is_late], edges)[0] for is_late in (False, True)]
axes.bar(edges[:-1], counts[1] / sum(counts), 1 / 30, align="edge", color="0.75")
for name, (start, stop, color) in zones.items():
    share = np.mean((scores >= start) & (scores < stop))
    axes.axvspan(start, stop, color=color, alpha=0.2, linewidth=0)
    axes.text((start + stop) / 2, 1.04, f"{name}\n{share:.0%}", ha="center", color=color)
axes.set(xlabel="score", ylabel="share of late flights", xlim=(0, 1), ylim=(0, 1.15))

plt.show()
