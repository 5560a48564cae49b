"""The impossibility result as something to see: Platt scaling against a world built from its own proof.

Prints what is shown, claimed and real for 10^2 to 10^6 rows, on coin flips and on a world that a fitted Platt map
describes perfectly, then the widths of `cor:CI-PS-diameter`; draws out/impossibility.png.
"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from calibrant import PlattCalibrator
from calibrant.adversary import confront, width_demonstration
from calibrant.views.impossibility import plot_confrontation

OUT = Path("out")


def fitted_platt() -> PlattCalibrator:
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=5_000)
    return PlattCalibrator().fit(scores, rng.uniform(size=5_000) < scores**2)


def main() -> None:
    coins = confront(PlattCalibrator())
    print("Labels are fair coins to every sample, and fixed by the score in truth\n")
    print(coins)
    tailored = confront(fitted_platt())
    print("\nLabels come at the very rates that a fitted Platt map predicts, and are fixed by the score in truth\n")
    print(tailored)
    print("\nIntervals centred on Platt's prediction (cor:CI-PS-diameter)\n")
    print(width_demonstration(PlattCalibrator()))
    figure = Figure(figsize=(11, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    plot_confrontation(coins, left).set_title("labels that look like fair coins")
    plot_confrontation(tailored, right).set_title("labels that look just as Platt says")
    OUT.mkdir(exist_ok=True)
    figure.savefig(OUT / "impossibility.png", dpi=150)
    print(f"\nDrew {OUT / 'impossibility.png'}")


if __name__ == "__main__":
    main()
