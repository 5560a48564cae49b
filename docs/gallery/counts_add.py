"""Share counts, not rows

Three airports want one calibrator, but can't share their rows. Each airport counts its flights and
its late flights in the same bins, and sends only these counts. The sum of the counts gives the same
guarantee as pooling all rows would.

Picture: Wide guaranteed intervals from each of three airports' counts, and narrow ones from their
sum.
"""

import matplotlib.pyplot as plt
import numpy as np
from realdata import scored_flights
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from calibrant import BinningCalibrator, Partition, Tally

plt.style.use("calibrant.draw.plain")

model = make_pipeline(StandardScaler(), LogisticRegression())
flights = scored_flights(model, ["hour", "month"], n=6_000)
bins = Partition.from_edges([0.15, 0.2, 0.25, 0.3])
counts = {
    name: Tally.from_data(bins, rows["score"], rows["late"])
    for name, rows in flights.groupby("origin")
}
counts["all three"] = counts["EWR"] + counts["JFK"] + counts["LGA"]

figure, axes = plt.subplots()
for number, (name, tally) in enumerate(counts.items()):
    guarantee = BinningCalibrator.from_tally(bins, tally).guarantee_
    at = np.arange(5) + 0.2 * (number - 1.5)
    color = "C0" if name == "all three" else str(0.45 + 0.13 * number)
    axes.vlines(at, guarantee.lower, guarantee.upper, color, linewidth=7, alpha=0.6, label=name)
    axes.plot(at, guarantee.value, "o", color=color, markersize=4)
axes.set(xlabel="score bin, from low to high", ylabel="share of late flights", xticks=[])
axes.legend(loc="upper left")

plt.show()
