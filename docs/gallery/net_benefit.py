"""Net benefit: is the model useful?

Net benefit is the share of true positives minus the weighted share of false positives, where the
weight depends on the threshold. The bands hold simultaneously for all thresholds, so you can look
at the whole curve before you choose a threshold.

Picture: Net benefit against threshold probability, with bands: a model that knows the departure
delay is far above one that doesn't, and above acting on all or none.
"""

import matplotlib.pyplot as plt
from realdata import scored_flights
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from calibrant import NetBenefitDisplay

plt.style.use("calibrant.draw.plain")

model = make_pipeline(StandardScaler(), LogisticRegression())
before = scored_flights(model, ["hour", "distance", "month"])
after = scored_flights(model, ["hour", "distance", "month", "dep_delay"])
models = {"at departure": after["score"], "a day before": before["score"]}

figure, axes = plt.subplots(figsize=(6.4, 4.6))
NetBenefitDisplay.from_predictions(after["late"], models, ax=axes)
axes.set(xlim=(0, 0.8), ylim=(-0.05, 0.25))

plt.show()
