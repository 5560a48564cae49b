"""Grouped or clustered data

Bad weather delays all of a day's flights, so flights on the same day aren't independent. If you
treat them as independent, the intervals are too narrow. With `groups=`, calibrant allows for this,
and the guarantee is about flights on new days.

Picture: Guaranteed intervals for six bins: they're narrow if rows are treated as independent, and
wider with days as groups.
"""

import matplotlib.pyplot as plt
import numpy as np
from realdata import scored_flights
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from calibrant import BinningCalibrator, Partition

plt.style.use("calibrant.draw.plain")

model = make_pipeline(StandardScaler(), LogisticRegression())
flights = scored_flights(model, ["hour", "distance"])
day = (100 * flights["month"] + flights["day"]).to_numpy()
bins = Partition.from_edges(
    np.quantile(flights["score"][::20], [1 / 6, 2 / 6, 3 / 6, 4 / 6, 5 / 6])
)

figure, axes = plt.subplots(figsize=(6.4, 4.4))
for shift, groups, color in ((-0.12, None, "0.6"), (0.12, day, "C0")):
    fitted = BinningCalibrator(partition=bins).fit(flights["score"], flights["late"], groups=groups)
    guarantee = fitted.guarantee_
    label = "rows treated as independent" if groups is None else "days as groups"
    at = np.arange(6) + shift
    axes.vlines(at, guarantee.lower, guarantee.upper, color, linewidth=9, alpha=0.5, label=label)
    axes.plot(at, guarantee.value, "o", color=color)
axes.set(xlabel="score bin, from low to high", ylabel="share of late flights")
axes.legend(loc="upper left")

plt.show()
