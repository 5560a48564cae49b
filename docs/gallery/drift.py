"""Have the rates changed?

`DriftMonitor` gathers evidence that rates differ from those of calibration; above the dashed line
it is an alarm. As long as nothing changes, the probability that it ever gets there is at most 5 %.

Picture: Evidence over sixty days; it stays low until day 30, then rises, and crosses the line of
alarm some days later.
"""

import matplotlib.pyplot as plt
import numpy as np

from calibrant import BinningCalibrator, DriftMonitor

rng = np.random.default_rng(0)
scores = rng.uniform(size=10_000)
calibrator = BinningCalibrator(n_bins=10).fit(scores, rng.uniform(size=10_000) < scores)
monitor = DriftMonitor(calibrator, random_state=0)
evidence = []
for day in range(60):
    scores = rng.uniform(size=200)
    rate = (
        scores if day < 30 else np.where(scores > 0.8, 0.7, scores)
    )  # the rate of the top scores falls on day 30
    monitor.update(scores, rng.uniform(size=200) < rate)
    evidence.append(monitor.log_evidence)

figure, axes = plt.subplots(figsize=(6, 3.8), layout="constrained")
axes.plot(evidence, label="evidence")
axes.axhline(monitor.log_threshold, color="black", linestyle="--", label="alarm")
axes.axvline(30, color="grey", linewidth=0.8)
axes.set(xlabel="day", ylabel="log evidence of a change")
axes.legend(frameon=False, fontsize=8)

plt.show()
