"""Values of a piecewise linear curve, looked up and added on the GPU that holds the scores."""

from __future__ import annotations

from calibrant._typing import FloatArray
from calibrant.kernels import device
from calibrant.kernels._curves import LINE, shape_along
from calibrant.kernels._numpy import Limits, OutsideLimitsError
from calibrant.kernels.libraries import DeviceArray, like


def follow(
    scores: DeviceArray, cuts: FloatArray, lines: FloatArray, *, limits: Limits | None = None
) -> DeviceArray:
    """Value of a piecewise linear curve, as in `calibrant.kernels.follow`.

    Each step of the sum is a separate operation, so that no compiler fuses two into one rounding.

    Parameters
    ----------
    scores : device array of shape (n,), float64 or float32
        Finite.
    cuts : numpy array of shape (m,)
        Strictly increasing.
    lines : numpy array of shape (m + 1, 3) or (m + 1, 3 + k)
        For each cell: where it begins, the value there, the slope, and k offsets.
    limits : (float, float), optional
        For scores not yet checked: raise `OutsideLimitsError` unless all are finite and within
        these limits.

    Returns
    -------
    device array of shape (n,) or (n, k)

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> follow(torch.tensor([0.25, 0.5]), np.array([0.5]), np.array([[0.0, 0.0, 0.5], [0.5, 0.75,
    ...     0.0]]))
    tensor([0.1250, 0.7500], dtype=torch.float64)
    """
    rows = scores.shape[0]
    ours = device.fused(scores)
    has_pairs = lines.shape[1] % 2 == LINE % 2
    if ours is not None and has_pairs:
        own = device.tensor_of(scores)
        out = device.new_array(like(lines[:0], own), shape_along(rows, lines))
        ends = device.own_ends(limits, own)
        is_inside = ours.follow(own, device.own_cuts(cuts, own), lines, out, ends)
        if limits is not None and not is_inside:
            raise OutsideLimitsError
        return device.back(out, scores)
    device.check_inside(scores, limits)
    with device.working_on(scores):
        out = device.new_array(like(lines[:0], scores), shape_along(rows, lines))
        for part in device.row_parts(rows):
            found = device.look_up(scores[part], cuts, lines)
            curve = scores[part] - found[:, 0]
            curve *= found[:, 2]
            curve += found[:, 1]
            if out.ndim == 1:
                out[part] = curve
                continue
            for place in range(out.shape[1]):
                out[part, place] = (curve + found[:, LINE + place]).clip(0.0, 1.0)
    return out
