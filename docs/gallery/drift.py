"""Drift monitoring: have the rates changed?

`DriftMonitor` gathers evidence that the rate at a given score has changed since calibration. If
nothing changes, the probability that the evidence ever crosses the dashed line is at most 5%.

Picture: Evidence from May to December, after calibration on January to April: it crosses the alarm
line within weeks, and stays above it.
"""

import matplotlib.pyplot as plt
import numpy as np
from realdata import scored_flights
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from calibrant import BinningCalibrator, DriftMonitor

plt.style.use("calibrant.draw.plain")

model = make_pipeline(StandardScaler(), LogisticRegression())
flights = scored_flights(model, ["hour", "distance"])
spring = flights["month"] <= 4
calibrator = BinningCalibrator(8).fit(flights["score"][spring], flights["late"][spring])

monitor = DriftMonitor(calibrator, random_state=0)
later = flights[~spring]
ends = np.arange(0, len(later), 100)
evidence = []
for end in ends:
    monitor.update(later["score"][end : end + 100], later["late"][end : end + 100])
    evidence.append(monitor.log_evidence)

figure, axes = plt.subplots(figsize=(6.4, 4.0))
axes.plot(5 + 8 * ends / len(later), evidence, label="evidence")
axes.axhline(monitor.log_threshold, color="C1", linestyle="--", label="alarm")
axes.set(xlabel="month of 2013", ylabel="log evidence of a change")
axes.legend()

plt.show()
