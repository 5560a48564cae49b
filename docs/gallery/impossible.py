"""What no method can guarantee

For a continuous score, there are distributions for which a smooth curve looks perfect on every
reliability diagram and yet is off by one half. A guarantee about bins says less, but it holds for
every distribution.

Picture: Error against the number of rows, in two panels. For Platt scaling, the error on a diagram
goes to 0, but the real error stays at 0.5. For bins, the real error stays below the guarantee, and
both fall.
"""

import matplotlib.pyplot as plt

from calibrant import PlattCalibrator
from calibrant.adversary import confront

plt.style.use("calibrant.draw.plain")

found = confront(PlattCalibrator(), sample_sizes=(100, 300, 1_000, 3_000, 10_000), random_state=1)

figure, panels = plt.subplots(1, 2, figsize=(8.0, 4.0), sharey=True)
titles = ("Platt scaling: looks right, is wrong", "Bins: never worse than claimed")
for axes, title, row in zip(panels, titles, (0, 1), strict=True):
    sizes = found.sample_sizes
    axes.semilogx(sizes, found.real[row], "o-", color="C1", label="real error")
    axes.plot(sizes, found.shown[row], ":", color="0.4", label="error on a diagram")
    if row == 1:
        axes.plot(sizes, found.claimed[row], color="C0", label="guaranteed")
    axes.set(title=title, xlabel="calibration rows", ylim=(0, 0.55))
    axes.legend(loc=(0.35, 0.55))
panels[0].set_ylabel("calibration error")

plt.show()
