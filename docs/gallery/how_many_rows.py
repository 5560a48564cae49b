"""How many labels do I need?

`plan` tells you before you pay for any labels. To halve epsilon, you need four times as many
labels. With more bins, you also need more labels. When we fit real flights, epsilon is close to the
plan, but a little larger because of tied scores.

Picture: Planned epsilon for 5 and 15 bins: it falls as the number of labels grows. Dots from fits
to flights lie close to the lines.
"""

import matplotlib.pyplot as plt
from realdata import scored_flights
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from calibrant import BinningCalibrator, plan

plt.style.use("calibrant.draw.plain")

model = make_pipeline(StandardScaler(), LogisticRegression())
flights = scored_flights(model).sample(frac=1.0, random_state=0)
rows = [1_000, 2_000, 4_000, 8_000, 16_000]

figure, axes = plt.subplots()
for n_bins, color in ((5, "C0"), (15, "C2")):
    planned = [plan(n=n, n_bins=n_bins).epsilon for n in rows]
    axes.loglog(rows, planned, color=color, label=f"planned, {n_bins} bins")
    fits = [BinningCalibrator(n_bins).fit(flights["score"][:n], flights["late"][:n]) for n in rows]
    epsilon = [fit.guarantee_.epsilon for fit in fits]
    axes.plot(rows, epsilon, "o", color=color, label=f"flights, {n_bins} bins")
axes.set(xlabel="labels", ylabel="epsilon at 90% confidence")
axes.set_yticks([0.02, 0.05, 0.1, 0.2, 0.4], ["0.02", "0.05", "0.1", "0.2", "0.4"])
axes.set_xticks(rows, [f"{n:,}" for n in rows])
axes.minorticks_off()
axes.legend()

plt.show()
