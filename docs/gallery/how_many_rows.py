"""How many labels do I need?

`plan` answers for `BinningCalibrator` before any label is bought. Four times as many labels halve
epsilon, and more bins need more labels.

Picture: Three falling lines on logarithmic axes: epsilon of bins against the number of labels for
5, 10 and 20 bins.
"""

import matplotlib.pyplot as plt

from calibrant import plan

rows = [500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000]
figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
for n_bins in (5, 10, 20):
    axes.loglog(
        rows, [plan(n=n, n_bins=n_bins).epsilon for n in rows], "o-", label=f"{n_bins} bins"
    )
axes.set(xlabel="labels", ylabel="epsilon of BinningCalibrator, at 90 % confidence")
axes.set_yticks([0.02, 0.05, 0.1, 0.2], ["0.02", "0.05", "0.1", "0.2"])
axes.minorticks_off()
axes.legend(frameon=False)

plt.show()
