"""Maximum likelihood for a logistic curve of one or two features: Newton's method on a loss that
has a minimum.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from calibrant._typing import FloatArray

RIDGE = 1e-12
"""Penalty on squared coefficients of standardised features, next to a mean loss of order 1.

It moves a well-determined optimum by about 1e-10, and gives one where the likelihood has none: if a
threshold separates the labels, or if there is only one class. Probabilities are then within about
1e-10 of 0 and 1.
"""

_STEPS = 500
_TOLERANCE = 1e-13


@dataclass(frozen=True, slots=True, eq=False)
class LogisticFit:
    """Coefficients of the features, the intercept, and the mean loss."""

    coefficients: FloatArray
    intercept: float
    loss: float


def fit_logistic(
    features: FloatArray, targets: FloatArray, weights: FloatArray, *, intercept: bool = True
) -> LogisticFit:
    """Minimise the weighted mean of log(1 + exp(z)) - t z over z = intercept + features @
    coefficients.

    Parameters
    ----------
    features : array of shape (n, k)
    targets : array of shape (n,)
        In [0, 1].
    weights : array of shape (n,)
        Not negative.
    intercept : bool
        Whether there is one; without it the features are not centred.

    Notes
    -----
    The loss is convex; each Newton step is halved until the loss falls enough (Armijo), so it
    converges from anywhere.
    """
    share = weights / weights.sum()
    size = np.maximum(np.abs(features).max(axis=0), np.finfo(np.float64).tiny)
    scaled = features / size
    centre = (share[:, None] * scaled).sum(axis=0) if intercept else np.zeros(scaled.shape[1])
    scaled = scaled - centre
    spread = np.sqrt((share[:, None] * scaled**2).sum(axis=0))
    constant = spread <= 1e-14  # a constant feature determines nothing
    scaled = np.where(constant, 0.0, scaled / np.where(constant, 1.0, spread))
    columns = np.column_stack([scaled, np.ones(len(scaled))]) if intercept else scaled
    theta, loss = _newton(columns, targets, share)
    slopes = np.where(constant, 0.0, theta[: scaled.shape[1]] / np.where(constant, 1.0, spread))
    offset = float(theta[-1] - (slopes * centre).sum()) if intercept else 0.0
    largest = np.finfo(np.float64).max
    return LogisticFit(np.clip(slopes / size, -largest, largest), offset, loss)


def _loss(
    theta: FloatArray, columns: FloatArray, targets: FloatArray, share: FloatArray
) -> tuple[float, FloatArray]:
    z = (columns * theta).sum(axis=1)
    return (
        float((share * (np.logaddexp(0.0, z) - targets * z)).sum() + RIDGE / 2 * (theta**2).sum()),
        z,
    )


def _newton(
    columns: FloatArray, targets: FloatArray, share: FloatArray
) -> tuple[FloatArray, float]:
    k = columns.shape[1]
    theta = np.zeros(k)
    loss, z = _loss(theta, columns, targets, share)
    for _ in range(_STEPS):
        p = expit(z)
        gradient = (columns * (share * (p - targets))[:, None]).sum(axis=0) + RIDGE * theta
        # sums rather than a matrix product: BLAS may add in another order on another machine
        curved = columns * (share * p * (1.0 - p))[:, None]
        hessian = np.array(
            [[(curved[:, i] * columns[:, j]).sum() for j in range(k)] for i in range(k)]
        )
        step = np.linalg.solve(hessian + RIDGE * np.eye(k), gradient)
        decrease = float((step * gradient).sum())
        length = 1.0
        while True:
            candidate = theta - length * step
            new_loss, new_z = _loss(candidate, columns, targets, share)
            if new_loss <= loss - 1e-4 * length * decrease or length < 1e-10:
                break
            length /= 2
        if not new_loss < loss:
            # rounding hides any further decrease of the loss; a last full step still brings the
            # gradient nearer to 0
            last = theta - step
            return (last, loss) if float(np.abs(step).max()) < 1e-5 else (theta, loss)
        moved = float(np.abs(candidate - theta).max())
        theta = candidate
        loss = new_loss
        z = new_z
        if moved <= _TOLERANCE * (1.0 + float(np.abs(theta).max())):
            break
    return theta, loss
