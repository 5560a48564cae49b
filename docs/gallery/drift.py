"""Has the rate moved?

`DriftMonitor` gathers evidence for a change in each bin; above the dashed line it is an alarm. As long as nothing
changes, the chance that any bin ever gets there is at most 5 %.

Picture: Evidence of five bins over sixty days; that of the highest bin rises after day 40 and crosses the line of
alarm.
"""

import matplotlib.pyplot as plt
import numpy as np

from calibrant import DriftMonitor, Partition

rng = np.random.default_rng(0)
monitor = DriftMonitor(Partition.fixed_width(5), confidence_level=0.95)
evidence = []
for day in range(60):
    scores = rng.uniform(size=200)
    rate = scores if day < 40 else np.where(scores > 0.8, 0.5, scores)  # the top scores fall on day 40
    monitor.update(scores, rng.uniform(size=200) < rate)
    evidence.append(monitor.log_evidence.copy())

figure, axes = plt.subplots(figsize=(6, 3.8), layout="constrained")
for region, path in enumerate(np.transpose(evidence)):
    axes.plot(path, label=f"scores {region / 5:.1f} to {region / 5 + 0.2:.1f}")
axes.axhline(monitor.log_threshold, color="black", linestyle="--", label="alarm")
axes.axvline(40, color="grey", linewidth=0.8)
axes.set(xlabel="day", ylabel="log evidence of a change")
axes.legend(frameon=False, fontsize=8)

plt.show()
