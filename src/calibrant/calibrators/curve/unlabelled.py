"""Unlabelled scores from the same population as the calibration rows."""

import numpy as np

from calibrant._typing import ArrayLike, FloatArray
from calibrant.calibrators.regions.binned_rows import Binned
from calibrant.errors import InvalidValueError
from calibrant.params.arrays import as_scores
from calibrant.text.numbers import nearest, percent
from calibrant.text.sentences import Setting

LEVEL = 0.01
"""The largest probability that scores from one population are rejected."""
_CUTS = 8


def read_unlabelled(scores: ArrayLike | None, **others: object) -> FloatArray | None:
    """Check the scores; raise an error if any of the `others` is given."""
    if scores is None:
        return None
    for name, value in others.items():
        if value is not None:
            rule = ("be None with ", Setting(name), ", because that is not implemented")
            raise InvalidValueError("unlabelled_scores", rule, got="scores")
    return np.asarray(as_scores(scores, name="unlabelled_scores"), dtype=np.float64)


def check_unlabelled(binned: Binned) -> None:
    """Raise an error for unlabelled scores that cannot be used."""
    if binned.unlabelled is None:
        return
    rule = "be None without pilot rows, and with an interval that you chose"
    advice = ("use the defaults of ", Setting("pilot"), " and ", Setting("interval"))
    raise InvalidValueError("unlabelled_scores", rule, got="scores", advice=advice)


def other_population(binned: Binned) -> str | None:
    """Why labelled and unlabelled scores cannot be from one population; None if they may be.

    If they are draws from one population, each set of rows that is determined by all scores has a
    hypergeometric number of labelled rows. Eight sets are tested, on both sides (Bonferroni); for
    one population, this is not None with probability at most 1%. It costs the limits nothing: with
    draws from one population they hold, whatever the test says.
    """
    from scipy.stats import hypergeom

    unlabelled = binned.unlabelled
    if unlabelled is None or not unlabelled.size:
        return None
    labelled = np.asarray(binned.whole.collect().scores, dtype=np.float64)
    both = np.concatenate([labelled, unlabelled])
    ranks = np.arange(1, _CUTS + 1) / (_CUTS + 1)
    cuts = np.unique(np.quantile(both, ranks, method="higher"))
    cuts = cuts[cuts > both.min()]
    best = 1.0
    difference = None
    for cut in cuts.tolist():
        in_all = int((both >= cut).sum())
        n_labelled = int((labelled >= cut).sum())
        law = hypergeom(both.size, in_all, labelled.size)
        tail = 2.0 * min(float(law.cdf(n_labelled)), float(law.sf(n_labelled - 1)))
        p_value = min(1.0, cuts.size * tail)
        if p_value < best:
            best = p_value
            of_others = (in_all - n_labelled) / unlabelled.size
            difference = (
                "the unlabelled scores come from another population: "
                f"{percent(round(of_others, 3))} of them but"
                f" {percent(round(n_labelled / labelled.size, 3))} of the labelled ones are at least"
                f" {nearest(cut)} (p {'< 0.0001' if p_value < 1e-4 else '= ' + nearest(p_value)})"
            )
    return difference if best <= LEVEL else None
