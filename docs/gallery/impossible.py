"""What no method can guarantee

For a continuous score, a distribution can be built on which a curve looks perfect and is wrong by
one half. Bins guarantee less, and keep it.

Picture: Claimed and real errors of Platt scaling and of binning over growing samples; only those of
Platt stay apart.
"""

import matplotlib.pyplot as plt

from calibrant import PlattCalibrator
from calibrant.adversary import confront
from calibrant.draw.impossibility import plot_confrontation

found = confront(PlattCalibrator(), sample_sizes=(100, 1_000, 10_000), random_state=1)
figure, axes = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
plot_confrontation(found, ax=axes)

plt.show()
