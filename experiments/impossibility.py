"""The impossibility result in numbers: Platt scaling on the distribution of its proof.

Prints the shown, claimed and real error for 10^2 to 10^6 rows, on coin flips and on a distribution
that looks exactly as a fitted Platt map predicts. Then prints the widths of Corollary 2 of the
paper, and draws out/impossibility.png.
"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from calibrant import PlattCalibrator
from calibrant.adversary import confront, width_demonstration

OUT = Path("out")


def fitted_platt() -> PlattCalibrator:
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=5_000)
    return PlattCalibrator().fit(scores, rng.uniform(size=5_000) < scores**2)


def main() -> None:
    coins = confront(PlattCalibrator())
    print(
        "In every sample the labels look like fair coin flips; in fact the score determines the"
        " label\n"
    )
    print(coins)
    tailored = confront(fitted_platt())
    print(
        "\nIn every sample the labels have the rates that a fitted Platt map predicts; in fact the"
        " score fixes them\n"
    )
    print(tailored)
    print("\nIntervals centred on Platt's prediction (Corollary 2 of the paper)\n")
    print(width_demonstration(PlattCalibrator()))
    figure = Figure(figsize=(11, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    coins.plot(left).set_title("labels that look like fair coins")
    tailored.plot(right).set_title("labels that look just as Platt says")
    OUT.mkdir(exist_ok=True)
    figure.savefig(OUT / "impossibility.png", dpi=150)
    print(f"\nDrew {OUT / 'impossibility.png'}")


if __name__ == "__main__":
    main()
