"""Sets of labels

With probability at least 90 %, a conformal set contains the label of a new row. It holds one label
where the score is clear, and both where it is not.

Picture: Bars by score: the shares of rows whose set is negative only, both labels, or positive
only.
"""

import matplotlib.pyplot as plt
import numpy as np

from calibrant.tripod import ConformalSets

rng = np.random.default_rng(0)
scores = rng.beta(0.8, 0.8, size=5_000)
y = rng.uniform(size=5_000) < scores

sets = ConformalSets().fit(scores[:2_000], y[:2_000]).predict_set(scores[2_000:], coverage=0.9)
covered = sets[np.arange(3_000), y[2_000:].astype(int)].mean()
kind = np.where(sets.all(axis=1), 1, np.where(sets[:, 1], 2, 0))
figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
parts = [scores[2_000:][kind == number] for number in range(3)]
axes.hist(
    parts,
    bins=25,
    stacked=True,
    label=["{0}", "{0, 1}", "{1}"],
    color=["#1f77b4", "#cccccc", "#d95f02"],
)
axes.set(
    xlabel="score", ylabel="rows", title=f"the set contains the label in {covered:.0%} of new rows"
)
axes.legend(frameon=False)

plt.show()
