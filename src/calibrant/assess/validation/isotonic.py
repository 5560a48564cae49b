"""The rate at each score by isotonic regression of labels on scores."""

import numpy as np
from sklearn.isotonic import isotonic_regression

from calibrant._typing import CodeArray, FloatArray
from calibrant.assess.metrics.independent_units import Units


def isotonic_rates(codes: CodeArray, scores: FloatArray, units: Units) -> FloatArray:
    """The fitted rate of each row; rows with equal scores share one rate."""
    inverse = np.unique(scores, return_inverse=True)[1]
    each = units.weights(codes.size)
    weights = np.bincount(inverse, each)
    rates = np.bincount(inverse, each * codes) / weights
    fitted: FloatArray = isotonic_regression(rates, sample_weight=weights)[inverse]
    return fitted
