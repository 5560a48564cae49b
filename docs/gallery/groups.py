"""Grouped or clustered data

Each customer has ten rows, and they are alike. If they are taken as independent rows, the guarantee
is too narrow. With `groups=` it is about new customers, and wider.

Picture: Guaranteed intervals of five bins without groups, narrow, and with groups, wider.
"""

import matplotlib.pyplot as plt
import numpy as np

from calibrant import BinningCalibrator

rng = np.random.default_rng(0)
customer = np.repeat(np.arange(1_000), 10)
scores = rng.uniform(size=customer.size)
mood = rng.choice([-1.0, 1.0], size=1_000)[customer]
y = rng.uniform(size=customer.size) < scores + 0.8 * mood * np.minimum(scores, 1 - scores)

figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
for shift, groups in ((-0.1, None), (0.1, customer)):
    guarantee = BinningCalibrator(5).fit(scores, y, groups=groups).guarantee_
    half = [guarantee.value - guarantee.lower, guarantee.upper - guarantee.value]
    label = "rows taken for independent" if groups is None else "groups=customer"
    axes.errorbar(np.arange(5) + shift, guarantee.value, half, fmt="o", capsize=3, label=label)
axes.set(xlabel="bin of the score", ylabel="rate")
axes.legend(frameon=False)

plt.show()
